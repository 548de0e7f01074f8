"""What a report is made of, worked out hour by hour and row by row: slow, plain, and by none of the database's sums."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import chain
from typing import Any

from billing.cost.arithmetic import Tokens, together
from billing.cost.pool_hours import Stretch, Use, Worked
from billing.cost.report_query import Asked
from billing.models import TargetHour
from engines.models import Pool, PoolHour

HOUR = timedelta(hours=1)
_LATE, _PERIOD = timedelta(minutes=2), timedelta(seconds=10)


class Rows:
    """All rows there are, read once."""

    def __init__(self) -> None:
        self.sampled, self.used = _by_hour(PoolHour.objects.all(), "pool"), _by_hour(TargetHour.objects.all(), "target")
        self.living = set(Pool.objects.values_list("name", flat=True))

    def worked(self, asked: Asked, now: datetime) -> dict[str, Worked]:
        pools = {asked.pool} if asked.pool else self.living | set(self.sampled)
        made = {pool: self._of_pool(pool, asked, now) for pool in pools}
        return {pool: worked for pool, worked in made.items() if worked.stretches}

    def _of_pool(self, pool: str, asked: Asked, now: datetime) -> Worked:
        sampled, used, worked = self.sampled.get(pool, {}), self.used.get(pool, {}), Worked()
        if not sampled and not used:
            return worked
        first_at, until = self._known(pool, now)
        until, stretches = min(asked.end, until), dict[object, Stretch]()
        for hour in _hours(asked):
            samples, uses = sampled.get(hour, []), used.get(hour, [])
            span = max(0.0, (min(hour + HOUR, until) - max(hour, first_at)).total_seconds())
            covered = sum(row.covered_seconds for row in samples)
            is_seen = bool(samples or uses) and (span < 60 or covered >= 0.9 * span)
            main = min(samples, key=lambda row: (-row.cost, row.currency)).currency if samples else None
            if not samples and not uses and not span:
                continue
            key = bucket(hour, asked), is_seen, main
            stretch = stretches.setdefault(key, Stretch(*key))
            stretch.gap += max(0.0, span - covered)
            stretch.last_hour = hour if samples or uses else stretch.last_hour
            up = sum(row.up_seconds for row in samples)
            stretch.up_seconds += up
            for row in samples:
                stretch.cost[row.currency] = stretch.cost.get(row.currency, Decimal(0)) + row.cost
            for row in uses:
                use = stretch.uses.setdefault(row.model, Use())
                prompt, cached = row.input_tokens, row.cached_input_tokens
                use.tokens = together((use.tokens, Tokens(prompt - cached, cached, row.output_tokens)))
                if row.cost:
                    use.charged[row.currency] = use.charged.get(row.currency, Decimal(0)) + row.cost
            if is_seen and span >= 1800 and up >= 1800:
                worked.best = max(worked.best or 0.0, sum(row.output_tokens for row in uses) / (up / 3600))
        worked.stretches = sorted(stretches.values(), key=lambda each: (each.bucket, each.is_seen))
        worked.best = worked.best or None
        return worked

    def _known(self, pool: str, now: datetime) -> tuple[datetime, datetime]:
        """When the pool was first sampled, or used; and until when it should have been sampled."""
        if not (samples := list(chain(*self.sampled.get(pool, {}).values()))):
            return min(self.used[pool]), now
        last = max(row.last_at for row in samples)
        is_over = pool not in self.living or now - last <= _LATE
        return min(row.first_at for row in samples), last + _PERIOD if is_over else now


def bucket(hour: datetime, asked: Asked) -> datetime:
    if asked.by == "hour":
        return hour.replace(tzinfo=None)
    local = hour.astimezone(asked.zone).replace(hour=0, minute=0, tzinfo=None)
    return local if asked.by == "day" else local.replace(day=1)


def _hours(asked: Asked) -> Iterator[datetime]:
    """Those of UTC that touch the span."""
    hour = asked.start.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    while hour < asked.end:
        yield hour
        hour += HOUR


def _by_hour(rows: Iterable[Any], name: str) -> dict[str, dict[datetime, list[Any]]]:
    found: dict[str, dict[datetime, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        found[getattr(row, name)][row.hour].append(row)
    return found
