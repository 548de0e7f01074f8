"""Percentiles, medians, and what one run of one contestant comes to."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from statistics import median

from headrace_dev.bench.load import Result


def percentile(values: Sequence[float], p: float) -> float:
    """The nearest-rank percentile: the smallest value that at least p % of the values do not exceed."""
    if not values:
        raise ValueError("no values")
    return sorted(values)[max(0, math.ceil(len(values) * p / 100) - 1)]


@dataclass(frozen=True)
class Spent:
    """CPU seconds of the gateway and of its Redis, in `wall` seconds or up to a moment."""

    wall: float
    cpu: float
    redis: float

    def __sub__(self, earlier: "Spent") -> "Spent":
        return Spent(self.wall - earlier.wall, self.cpu - earlier.cpu, self.redis - earlier.redis)

    def without(self, idle: "Spent") -> "Spent":
        """What was spent beyond what the idle servers spend in that time."""
        part = self.wall / idle.wall
        return Spent(self.wall, self.cpu - idle.cpu * part, self.redis - idle.redis * part)


@dataclass(frozen=True)
class Figures:
    """One run. Milliseconds, but for `failed`: streams that did not come whole, in no other figure but the CPU's.

    CPU is per stream, beyond the idle server's, which is given per second. `added_*` are over the direct run of the
    same round and rate.
    """

    failed: float
    cpu_ms: float
    redis_cpu_ms: float
    idle_cpu_ms: float
    ttft_p50_ms: float
    ttft_p99_ms: float
    delay_p50_ms: float
    delay_p99_ms: float
    added_ttft_p50_ms: float = 0
    added_ttft_p99_ms: float = 0
    added_delay_p99_ms: float = 0

    def over(self, direct: "Figures") -> "Figures":
        return replace(
            self,
            added_ttft_p50_ms=self.ttft_p50_ms - direct.ttft_p50_ms,
            added_ttft_p99_ms=self.ttft_p99_ms - direct.ttft_p99_ms,
            added_delay_p99_ms=self.delay_p99_ms - direct.delay_p99_ms,
        )


def figures(result: Result, spent: Spent, idle: Spent) -> Figures:
    streams = len(result.ttft) + len(result.failed)
    extra = spent.without(idle)
    return Figures(
        failed=len(result.failed),
        cpu_ms=extra.cpu * 1000 / streams,
        redis_cpu_ms=extra.redis * 1000 / streams,
        idle_cpu_ms=idle.cpu * 1000 / idle.wall,
        ttft_p50_ms=percentile(result.ttft, 50) / 1e6,
        ttft_p99_ms=percentile(result.ttft, 99) / 1e6,
        delay_p50_ms=percentile(result.delays, 50) / 1e6,
        delay_p99_ms=percentile(result.delays, 99) / 1e6,
    )


def middle(runs: Sequence[Figures]) -> Figures:
    """Each figure's own median over the rounds; of failures, the sum."""
    medians = Figures(**{field.name: median(getattr(run, field.name) for run in runs) for field in fields(Figures)})
    return replace(medians, failed=sum(run.failed for run in runs))
