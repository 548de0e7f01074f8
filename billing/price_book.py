"""The prices as the data plane looks them up: all of them in memory, those still to come too."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

import msgspec

from billing.pricing import Rates

SELECT = (
    "SELECT version, model, target, tenant, currency, input, cached_input, output,"
    " ceil(extract(epoch FROM effective_from) * 1000)::bigint FROM billing_price ORDER BY effective_from"
)


class Quote(msgspec.Struct, frozen=True):
    """The price of a request: its version, as records state it, and its rates."""

    version: str
    rates: Rates


class PriceBook:
    """Built whole from the rows of SELECT. `find` is a few dict look-ups and a bisection."""

    def __init__(self, rows: Iterable[tuple[Any, ...]] = ()) -> None:
        self._prices: dict[tuple[str, str, str, str], tuple[list[int], list[Quote]]] = {}
        for version, model, target, tenant, currency, *rates, effective_ms in rows:
            moments, quotes = self._prices.setdefault((model, target, tenant, currency), ([], []))
            moments.append(effective_ms)
            quotes.append(Quote(version, Rates(*rates)))

    def find(self, *, model: str, target: str, tenant: str, currency: str, at_ms: int) -> Quote | None:
        """The price in force at `at_ms` (epoch ms): the tenant's own before all others', the target's before any's."""
        for scope in ((target, tenant), ("", tenant), (target, ""), ("", "")):
            if found := self._prices.get((model, *scope, currency)):
                moments, quotes = found
                if at := bisect_right(moments, at_ms):
                    return quotes[at - 1]
        return None
