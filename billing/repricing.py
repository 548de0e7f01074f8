"""Each request pays the price that the list says was in force when it was admitted, whatever its process knew of it.

A process that was frozen, or cut off from the database, may admit and settle by a list that is no longer whole. So the
drain looks each price up once more before it writes: every price that was in force when a request was admitted is in
the list by then (price_start.py). A row whose price the list does not know is left as it is, for `ledger check` to
tell of; so is one that states a price where the list has none.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from django.db import connection

from billing import pricing
from billing.events import COLUMNS, Entry
from billing.price_book import SELECT, PriceBook
from billing.usage import PRICING, SHADOW, admitted_ms

_AT = {name: place for place, name in enumerate(COLUMNS)}
_SCOPE = ("model", "target", "tenant", "currency")
_TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens")
_LATEST = "SELECT coalesce(max(id), 0) FROM config_change"


class PriceList:
    """The price list of this process's drain, read anew when any configuration changed."""

    def __init__(self) -> None:
        self._last = -1
        self._book = PriceBook()
        self._versions: frozenset[str] = frozenset()

    def put_right(self, entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
        """All of `entries` at their list prices, and those of them that came with another price, or with none."""
        self._read()
        rows, changed = [], []
        for entry in entries:
            right = self._right(entry)
            rows.append(right or entry)
            if right is not None:
                changed.append(right)
        return rows, changed

    def _right(self, entry: Entry) -> Entry | None:
        """The entry at the price of the list; None where it is already, or where the list has nothing to say."""
        row = entry.row
        stated = row[_AT["price"]]
        if row[_AT["kind"]] in {PRICING, SHADOW} or (stated is not None and stated not in self._versions):
            return None
        scope = {name: row[_AT[name]] for name in _SCOPE}
        quote = self._book.find(**scope, at_ms=admitted_ms(row[_AT["request_id"]]))
        if quote is None or quote.version == stated:
            return None
        cost = pricing.cost(quote.rates, **{name: row[_AT[name]] for name in _TOKENS})
        return entry._replace(row=_changed(row, price=quote.version, cost=cost, cost_nano=pricing.nano(cost)))

    def _read(self) -> None:
        """Prices change with a row of config_change, in one transaction."""
        with connection.cursor() as cursor:
            cursor.execute(_LATEST)
            (last,) = cursor.fetchone()
            if last != self._last:
                cursor.execute(SELECT)
                found = cursor.fetchall()
                self._book, self._versions = PriceBook(found), frozenset(version for version, *_ in found)
                self._last = last


def _changed(row: tuple[Any, ...], **values: Decimal | str | int) -> tuple[Any, ...]:
    changed = list(row)
    for name, value in values.items():
        changed[_AT[name]] = value
    return tuple(changed)
