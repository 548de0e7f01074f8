"""A tenant's figures over a span of time, out of its rollups; latencies out of the newest records alone."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import connections

from billing.usage import SHADOW
from headrace.portal.rollups import DIMENSIONS, SUMS, TOTALS, Rollups
from headrace.portal.rows import APP
from tenants.models import Tenant

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


def total(rows: Rollups) -> Figures:
    [sums] = rows.select(TOTALS)
    return Figures("", *sums)


def dearest_first(lines: Iterable[Figures]) -> list[Figures]:
    return sorted(lines, key=lambda line: (-line.cost, -line.tokens, -line.requests, str(line.name)))


def grouped(rows: Rollups, name: str) -> list[Figures]:
    """One line for each value of a dimension, the dearest first, then the most used."""
    return dearest_first(Figures(*line) for line in rows.select(f"{name}, {TOTALS}", group="1"))


def course(rows: Rollups) -> list[Figures]:
    """One line a step in which something was used, oldest first."""
    lines = rows.select(f"step, {TOTALS}", group="1")
    return sorted((Figures(rows.moment(step), *sums) for step, *sums in lines), key=lambda line: line.name)


def course_and_groups(rows: Rollups, *names: str) -> tuple[list[Figures], list[list[Figures]]]:
    """The course, and what each of `names` groups to, found in one pass."""
    sets = ", ".join(f"({place})" for place in range(1, 2 + len(names)))
    columns = ["step", *names]
    found: list[list[Figures]] = [[] for _ in columns]
    for row in rows.select(f"{', '.join(columns)}, {TOTALS}", group=f"GROUPING SETS ({sets})"):
        # Of the columns that are grouped by, all but the set's own are null, and no value is.
        place = next(place for place in range(len(columns)) if row[place] is not None)
        found[place].append(Figures(row[place] if place else rows.moment(row[0]), *row[len(columns) :]))
    steps, *groups = found
    return sorted(steps, key=lambda line: line.name), [dearest_first(lines) for lines in groups]


def values(rows: Rollups) -> dict[str, list[str]]:
    """What may be chosen of each dimension: the values that are used, found in one pass."""
    sets = ", ".join(f"({name})" for name in DIMENSIONS)
    found: dict[str, list[str]] = {name: [] for name in DIMENSIONS}
    for row in rows.select(", ".join(DIMENSIONS), group=f"GROUPING SETS ({sets})"):
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
            " FROM (SELECT ttft_ms, tpot_ms FROM billing_usagerecord WHERE tenant = %s AND part = 0 AND kind <> %s"
            " AND admitted_at >= %s ORDER BY admitted_at DESC, request_id DESC LIMIT %s) AS newest",
            [tenant.pk, SHADOW, start, NEWEST],
        )
        requests, first, between = cursor.fetchone()
    return Latency(requests, *(first or (None, None)), *(between or (None, None)))
