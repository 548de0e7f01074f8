"""Which rollups a span of a tenant is read from: its whole local days from UsageDay, the rest of it from UsageHour.

The figures are those of the span's hours, from a fraction of the rows. Whoever reads need not know which they are.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

from django.db import connections

from billing.budgets.windows import day_begin
from billing.models import TenantZone
from billing.usage import PRICING
from headrace.portal.rows import APP
from tenants.models import Tenant

DIMENSIONS = ("project", "key", "model", "target")
SUMS = (
    "requests", "errors", "cancelled", "abandoned", "unpriced", "input_tokens", "cached_input_tokens", "output_tokens",
    "cost",
)  # fmt: skip
_COLUMNS = ", ".join((*DIMENSIONS, "kind", *SUMS, "cost_nano"))
_TOKENS = frozenset({"input_tokens", "cached_input_tokens", "output_tokens"})
# Before a period in another zone begins, days of both zones may begin: for how long before, hours are read.
_BESIDE_A_CHANGE = timedelta(days=2)
_END = datetime.max.replace(tzinfo=UTC)


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

    A step is the beginning of an hour (by_hour: all rows are hours) or of a day of `zone`.
    """

    table: str
    arguments: list[Any]
    by_hour: bool
    zone: str

    def select(self, columns: str, *arguments: Any, group: str = "") -> list[tuple[Any, ...]]:
        """`columns` of all rows, or of each `group`; `arguments` are the columns'. Within rows_of."""
        grouping = f"GROUP BY {group}" if group else ""
        with connections[APP].cursor() as cursor:
            cursor.execute(f"SELECT {columns} FROM {self.table} {grouping}", [*arguments, *self.arguments])
            return list(cursor.fetchall())

    def moment(self, step: datetime) -> datetime:
        """The instant that a step as it was read begins."""
        return step if self.by_hour else step.replace(tzinfo=ZoneInfo(self.zone))


def rollups(tenant: Tenant, start: datetime, end: datetime, *, by_hour: bool = False, **chosen: str) -> Rollups:
    """Those of [start, end), of the tenant's currency; `chosen` narrows to one project, key, model or target."""
    where = {"tenant": tenant.pk, "currency": tenant.currency, **{name: it for name, it in chosen.items() if it}}
    days = None if by_hour else _whole_days(tenant, start, end)
    spans = [("hour", start, end)]
    if days is not None:
        spans = [("day", *days), ("hour", start, days[0]), ("hour", days[1], end)]
    condition = " AND ".join(f"{name} = %s" for name in where)
    parts: list[str] = []
    arguments: list[Any] = []
    for column, first, last in spans:
        if first >= last and parts:
            continue
        step = column if by_hour else f"date_trunc('day', {column} AT TIME ZONE %s)"
        parts.append(
            f"SELECT {step} AS step, {_COLUMNS} FROM billing_usage{column}"
            f" WHERE {condition} AND {column} >= %s AND {column} < %s"
        )
        arguments += [*([] if by_hour else [tenant.time_zone]), *where.values(), first, last]
    return Rollups(f"({' UNION ALL '.join(parts)}) AS rollups", arguments, by_hour, tenant.time_zone)


def _whole_days(tenant: Tenant, start: datetime, end: datetime) -> tuple[datetime, datetime] | None:
    """The midnights between which days hold exactly the hours that there are: the longest such time within the span.

    Days are of the zone that the tenant's period had, pages of the one that the tenant has.
    """
    if end - start < timedelta(days=1):
        return None
    known = list(TenantZone.objects.filter(tenant=tenant.pk).order_by("since").values_list("since", "time_zone"))
    best = None
    for (since, zone), (until, _) in pairwise([*known, (_END, "")]):
        if zone != tenant.time_zone:
            continue
        first = _midnight_from(max(start, since), zone)
        last = day_begin(min(end, until - _BESIDE_A_CHANGE).astimezone(ZoneInfo(zone)).date(), zone)
        if first < last and (best is None or last - first > best[1] - best[0]):
            best = first, last
    return best


def _midnight_from(moment: datetime, zone: str) -> datetime:
    """The first midnight at or after `moment`."""
    day = moment.astimezone(ZoneInfo(zone)).date()
    midnight = day_begin(day, zone)
    return midnight if midnight >= moment else day_begin(day + timedelta(days=1), zone)
