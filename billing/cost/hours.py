"""The hours a report is made of: of each pool what was up and what it cost, and what it was asked for and charged."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from django.db.models import Max, Min

from billing.cost.arithmetic import NONE, Tokens
from billing.models import TargetHour
from engines.models import Pool, PoolHour

HOUR = timedelta(hours=1)
# An hour of which less was sampled is a gap: its tokens are not set against half its cost.
SEEN_SHARE = 0.9
_MIN_SPAN = 60.0
# How late the newest samples may be in the hours, and for how long one speaks (engines/load).
_LATE = timedelta(minutes=2)
_PERIOD = timedelta(seconds=10)


@dataclass
class Use:
    """What one model did at a pool in an hour. `charged` by the tenants' currencies."""

    tokens: Tokens = NONE
    charged: dict[str, Decimal] = field(default_factory=dict)


@dataclass
class Hour:
    """`span`: seconds of the hour that could have been sampled (none before the pool's first sample, or to come)."""

    start: datetime
    cost: dict[str, Decimal] = field(default_factory=dict)
    up_seconds: float = 0.0
    covered: float = 0.0
    span: float = 3600.0
    uses: dict[str, Use] = field(default_factory=dict)

    @property
    def gap(self) -> float:
        return max(0.0, self.span - self.covered)

    @property
    def is_seen(self) -> bool:
        return self.span < _MIN_SPAN or self.covered >= SEEN_SHARE * self.span

    @property
    def tokens(self) -> Tokens:
        return sum((use.tokens for use in self.uses.values()), NONE)

    @property
    def best_rate(self) -> float | None:
        """Output tokens a replica wrote in this hour, where at least one was up for half of it; else None."""
        if not self.is_seen or self.span < 1800 or self.up_seconds < 1800:
            return None
        return self.tokens.output / (self.up_seconds / 3600)


def read(start: datetime, end: datetime, *, pool: str | None, now: datetime) -> dict[str, list[Hour]]:
    """Of each pool, its hours that touch [start, end), in order: those sampled and those in which it was used."""
    first = start.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    pools = _pools(pool, now)
    hours: dict[str, dict[datetime, Hour]] = {name: {} for name in pools}
    sampled = PoolHour.objects.filter(hour__gte=first, hour__lt=end, pool__in=pools)
    for row in sampled:
        hour = hours[row.pool].setdefault(row.hour, Hour(row.hour))
        hour.cost[row.currency] = row.cost
        hour.up_seconds += row.up_seconds
        hour.covered += row.covered_seconds
    for use in TargetHour.objects.filter(hour__gte=first, hour__lt=end, target__in=pools):
        _add(hours[use.target].setdefault(use.hour, Hour(use.hour)), use)
    for name, found in hours.items():
        first_at, until = pools[name]
        _fill_gaps(found, first_at, first, min(end, until))
    return {name: [found[hour] for hour in sorted(found)] for name, found in hours.items() if found}


def _pools(pool: str | None, now: datetime) -> dict[str, tuple[datetime | None, datetime]]:
    """Of each pool its first sample, and until when it should have been sampled: now, or its last sample if that is
    rolled up in a moment, or if the pool is no more. A pool that is gone costs nothing after it."""
    living = set(Pool.objects.values_list("name", flat=True))
    sampled = PoolHour.objects.all() if pool is None else PoolHour.objects.filter(pool=pool)
    spans = sampled.order_by().values("pool").annotate(first=Min("first_at"), last=Max("last_at"))
    known = {row["pool"]: (row["first"], row["last"]) for row in spans}
    found: dict[str, tuple[datetime | None, datetime]] = {}
    for name in living | set(known) if pool is None else {pool}:
        first, last = known.get(name, (None, None))
        is_over = last is not None and (name not in living or now - last <= _LATE)
        found[name] = (first, last + _PERIOD if is_over and last is not None else now)
    return found


def _add(hour: Hour, row: TargetHour) -> None:
    use = hour.uses.setdefault(row.model, Use())
    uncached = row.input_tokens - row.cached_input_tokens
    use.tokens += Tokens(uncached, row.cached_input_tokens, row.output_tokens)
    if row.cost:
        use.charged[row.currency] = use.charged.get(row.currency, Decimal(0)) + row.cost


def _fill_gaps(found: dict[datetime, Hour], first_at: datetime | None, start: datetime, until: datetime) -> None:
    """Say of each hour how much of it could have been sampled, and put in those of which nothing is there."""
    if first_at is not None:
        hour = max(start, first_at.replace(minute=0, second=0, microsecond=0))
        while hour < until:
            found.setdefault(hour, Hour(hour))
            hour += HOUR
    for hour, row in found.items():
        begin = hour if first_at is None else max(hour, first_at)
        row.span = max(0.0, (min(hour + HOUR, until) - begin).total_seconds())
