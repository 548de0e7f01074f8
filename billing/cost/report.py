"""The report: for each pool and model by hour, day or month, what a million tokens cost, and what they were sold for.

A pool's cost is shared between its models, so that their parts add up to it: in proportion to all their tokens of the
bucket's sampled hours (hours.SEEN_SHARE), where there are none of all its hours, else evenly. Figures per million are
of the sampled hours; the others are its gap. Everything of a line is in one currency, its
pool's or the one asked for; lines of two currencies are never added up. Charges and hosted prices in other currencies
are converted at the rate of the bucket's first day; where one is missing the line says which, and has no such figure.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time

from billing.cost import hosted as hosted_prices
from billing.cost import hours as cost_hours
from billing.cost.exchange_rates import Exchange
from billing.cost.line import Line
from billing.cost.pool_hours import Stretch, Worked
from billing.cost.pool_lines import PoolLines
from billing.cost.report_query import Asked
from engines.models import Pool


@dataclass(frozen=True)
class Report:
    asked: Asked
    lines: list[Line]
    best: dict[str, float] = field(default_factory=dict)
    gap_seconds: float = 0.0

    @property
    def currencies(self) -> list[str]:
        return sorted({line.currency for line in self.lines})

    @property
    def missing(self) -> list[str]:
        return sorted({rate for line in self.lines for rate in line.missing})


def report(asked: Asked, *, now: datetime | None = None) -> Report:
    """What was asked, from the rollups alone."""
    now = now or datetime.now(UTC)
    worked = cost_hours.read(asked.start, asked.end, by=asked.by, zone=str(asked.zone), pool=asked.pool, now=now)
    return report_of(worked, asked, now=now)


def report_of(worked: Mapping[str, Worked], asked: Asked, *, now: datetime) -> Report:
    """The report of what each pool did."""
    exchange, listed = Exchange(), hosted_prices.listed(min(asked.end, now))
    configured = dict(Pool.objects.values_list("name", "cost_currency"))
    lines: list[Line] = []
    best: dict[str, float] = {}
    gap = 0.0
    for pool, found in sorted(worked.items()):
        if found.best:
            best[pool] = found.best
        # Of hours that nobody sampled: the currency of the latest that somebody did, else the one to come.
        usual = found.last_currency or configured.get(pool, "")
        maker = PoolLines(asked, pool, exchange, listed, found.best, usual)
        for start, bucket in _buckets(found.stretches, asked):
            if made := maker.of_bucket(start, bucket):
                lines += made
                gap += sum(stretch.gap for stretch in bucket)
    lines.sort(key=lambda line: (line.start, line.pool, line.model))
    return Report(asked, lines, best, round(gap, 1))


def _buckets(found: Sequence[Stretch], asked: Asked) -> Iterable[tuple[datetime, list[Stretch]]]:
    buckets: dict[datetime, list[Stretch]] = {}
    for stretch in found:
        at = stretch.bucket
        start = (
            at.replace(tzinfo=UTC).astimezone(asked.zone)
            if asked.by == "hour"
            else datetime.combine(at.date(), time(), asked.zone)
        )
        buckets.setdefault(start, []).append(stretch)
    return buckets.items()
