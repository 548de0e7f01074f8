"""Which rollups a span of a tenant is read from: its whole local days from UsageDay, the rest of it from UsageHour.

The figures are those of the span's hours, from a fraction of the rows. Whoever reads need not know which they are.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connections

from billing.periods import DAY, Calendar, calendar_of
from billing.usage import PRICING, SHADOW
from headrace.portal.rows import APP
from tenants.models import Tenant

DIMENSIONS = ("project", "key", "model", "target")
SUMS = (
    "requests", "errors", "cancelled", "abandoned", "unpriced", "input_tokens", "cached_input_tokens", "output_tokens",
    "cost",
)  # fmt: skip
_COLUMNS = ", ".join((*DIMENSIONS, "kind", *SUMS, "cost_nano", "cost_nano_beyond"))
_TOKENS = frozenset({"input_tokens", "cached_input_tokens", "output_tokens"})


def _total(name: str) -> str:
    """As Rollup.total: the tokens of rows that price others late are those others'."""
    if name in _TOKENS:
        return f"coalesce(sum({name}) FILTER (WHERE kind <> '{PRICING}'), 0)::bigint"
    return f"coalesce(sum({name}), 0)" if name == "cost" else f"coalesce(sum({name}), 0)::bigint"


TOTALS = ", ".join(map(_total, SUMS))
TOKENS = f"{_total('input_tokens')} + {_total('output_tokens')}"


@dataclass(frozen=True, slots=True)
class Rollups:
    """The rows of a span: a table, as SQL with its arguments, of `step` and _COLUMNS.

    A step is the beginning of an hour (by_hour: all rows are hours) or of a day of the tenant's `calendar`.
    """

    table: str
    arguments: list[Any]
    by_hour: bool
    calendar: Calendar

    def select(self, columns: str, *arguments: Any, group: str = "") -> list[tuple[Any, ...]]:
        """`columns` of all rows, or of each `group`; `arguments` are the columns'. Within rows_of."""
        grouping = f"GROUP BY {group}" if group else ""
        with connections[APP].cursor() as cursor:
            cursor.execute(f"SELECT {columns} FROM {self.table} {grouping}", [*arguments, *self.arguments])
            return list(cursor.fetchall())

    def moment(self, step: datetime) -> datetime:
        """The instant that a step as it was read begins: of a day with two midnights the first."""
        return step if self.by_hour else self.calendar.day_start(self.calendar.date_at(step))


def rollups(tenant: Tenant, start: datetime, end: datetime, *, by_hour: bool = False, **chosen: str) -> Rollups:
    """Those of [start, end), of the tenant's currency; `chosen` narrows to one project, key, model or target.

    Shadow copies, for which no tenant asked, are in none, as they are in no invoice.
    """
    calendar = calendar_of(tenant.pk)
    where = {"tenant": tenant.pk, "currency": tenant.currency, **{name: it for name, it in chosen.items() if it}}
    condition = " AND ".join([*(f"{name} = %s" for name in where), f"kind <> '{SHADOW}'"])
    parts: list[str] = []
    arguments: list[Any] = []
    for column, first, last in [("hour", start, end)] if by_hour else _pieces(calendar, start, end):
        is_part_of_a_day = column == "hour" and not by_hour
        step = "%s::timestamptz" if is_part_of_a_day else column
        parts.append(
            f"SELECT {step} AS step, {_COLUMNS} FROM billing_usage{column}"
            f" WHERE {condition} AND {column} >= %s AND {column} < %s"
        )
        day = [calendar.day_start(calendar.date_at(first))] if is_part_of_a_day else []
        arguments += [*day, *where.values(), first, last]
    return Rollups(f"({' UNION ALL '.join(parts)}) AS rollups", arguments, by_hour, calendar)


def _pieces(calendar: Calendar, start: datetime, end: datetime) -> list[tuple[str, datetime, datetime]]:
    """The whole days of the span, and its first and its last hours where they are not of whole days."""
    first = calendar.day_start(calendar.date_at(start))
    if first < start:
        first = calendar.window_at(DAY, start).end
    last = calendar.day_start(calendar.date_at(end))
    if first > last:
        return [("hour", start, end)]
    pieces = [("day", first, last), ("hour", start, first), ("hour", last, end)]
    return [piece for piece in pieces if piece[1] < piece[2]] or [("hour", start, end)]
