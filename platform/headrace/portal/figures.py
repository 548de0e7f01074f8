"""A tenant's figures over a span of time, out of the hourly rollups; latencies out of the newest records alone."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import connections
from django.db.models import QuerySet

from billing.models import UsageHour
from headrace.portal.rows import APP
from tenants.models import Tenant

SUMS = (
    "requests", "errors", "cancelled", "abandoned", "unpriced", "input_tokens", "cached_input_tokens", "output_tokens",
    "cost",
)  # fmt: skip
DIMENSIONS = ("project", "key", "model", "target")
NEWEST = 2000  # records that latencies are taken from


@dataclass(frozen=True, slots=True)
class Figures:
    """Sums of one group. `name` is the group's; tokens are counts; `cost` is exact, without the `unpriced`."""

    name: Any
    requests: int = 0
    errors: int = 0
    cancelled: int = 0
    abandoned: int = 0
    unpriced: int = 0
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    cost: Decimal = Decimal(0)

    @property
    def uncached_tokens(self) -> int:
        return self.input_tokens - self.cached_input_tokens

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def amount(self) -> Decimal | None:
        """The cost, None where nothing of it has a price."""
        return None if self.requests and self.unpriced >= self.requests and not self.cost else self.cost


def added(name: Any, parts: Sequence[Figures]) -> Figures:
    """The sums of `parts`, under another name."""
    sums = {column: sum(getattr(part, column) for part in parts) for column in SUMS}
    return Figures(name, **sums | {"cost": Decimal(sums["cost"])})


@dataclass(frozen=True, slots=True)
class Latency:
    """Percentiles in milliseconds: to the first token, and from each token to the next. None: nothing to measure."""

    requests: int
    ttft_p50: float | None
    ttft_p99: float | None
    tpot_p50: float | None
    tpot_p99: float | None


def hours(tenant: Tenant, start: datetime, end: datetime, **chosen: str) -> QuerySet[UsageHour]:
    """The rollups of [start, end), of the tenant's currency; `chosen` narrows to one project, key, model or target."""
    found = UsageHour.objects.of(tenant).filter(hour__gte=start, hour__lt=end, currency=tenant.currency)
    return found.filter(**{name: value for name, value in chosen.items() if value}).order_by()


def total(rows: QuerySet[UsageHour]) -> Figures:
    return Figures("", **rows.aggregate(**{name: UsageHour.total(name) for name in SUMS}))


def dearest_first(lines: Iterable[Figures]) -> list[Figures]:
    return sorted(lines, key=lambda line: (-line.cost, -line.tokens, -line.requests, str(line.name)))


def values(tenant: Tenant, start: datetime, end: datetime) -> dict[str, list[str]]:
    """What may be chosen of each dimension: the values used in the span, found in one pass."""
    sets = ", ".join(f"({name})" for name in DIMENSIONS)
    found: dict[str, list[str]] = {name: [] for name in DIMENSIONS}
    with connections[APP].cursor() as cursor:
        cursor.execute(
            f"SELECT {', '.join(DIMENSIONS)} FROM billing_usagehour WHERE tenant = %s AND currency = %s"
            f" AND hour >= %s AND hour < %s GROUP BY GROUPING SETS ({sets})",
            [tenant.pk, tenant.currency, start, end],
        )
        for row in cursor:
            for name, value in zip(DIMENSIONS, row, strict=True):
                if value is not None:
                    found[name].append(value)
    return {name: sorted(each) for name, each in found.items()}


def latency(tenant: Tenant, start: datetime) -> Latency:
    """Of the newest records since `start`, NEWEST at most: the same work however much is in the ledger."""
    with connections[APP].cursor() as cursor:
        cursor.execute(
            "SELECT count(*), percentile_cont(ARRAY[0.5, 0.99]) WITHIN GROUP (ORDER BY ttft_ms),"
            " percentile_cont(ARRAY[0.5, 0.99]) WITHIN GROUP (ORDER BY tpot_ms)"
            " FROM (SELECT ttft_ms, tpot_ms FROM billing_usagerecord WHERE tenant = %s AND part = 0"
            " AND admitted_at >= %s ORDER BY admitted_at DESC, request_id DESC LIMIT %s) AS newest",
            [tenant.pk, start, NEWEST],
        )
        requests, first, between = cursor.fetchone()
    return Latency(requests, *(first or (None, None)), *(between or (None, None)))
