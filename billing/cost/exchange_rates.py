"""Exchange rates as they held on a day. One that is missing is None, and whatever needs it is not known: never 1."""

from bisect import bisect_right
from collections import defaultdict
from datetime import date
from decimal import Decimal

from billing.models import ExchangeRate

_ONE = Decimal(1)


class Exchange:
    """All rates, read once."""

    def __init__(self) -> None:
        self._rates: dict[tuple[str, str], list[tuple[date, Decimal]]] = defaultdict(list)
        self._found: dict[tuple[str, str, date], Decimal | None] = {}
        for row in ExchangeRate.objects.order_by("day"):
            self._rates[row.base, row.quote].append((row.day, row.rate))

    def rate(self, base: str, quote: str, day: date) -> Decimal | None:
        """What one `base` is in `quote` on `day`: the latest rate not after it, else the inverse of the other way's."""
        if base == quote:
            return _ONE
        if (asked := (base, quote, day)) not in self._found:
            self._found[asked] = self._find(base, quote, day)
        return self._found[asked]

    def _find(self, base: str, quote: str, day: date) -> Decimal | None:
        if (direct := self._latest(base, quote, day)) is not None:
            return direct
        inverse = self._latest(quote, base, day)
        return None if inverse is None else 1 / inverse

    def _latest(self, base: str, quote: str, day: date) -> Decimal | None:
        rates = self._rates.get((base, quote), [])
        place = bisect_right(rates, day, key=lambda entry: entry[0])
        return rates[place - 1][1] if place else None
