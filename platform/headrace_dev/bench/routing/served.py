"""What became of the requests of one run, and what it comes to."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import mean
from typing import Any, NamedTuple

import msgspec

from headrace_dev.bench.figures import percentile
from headrace_dev.bench.traces import Shape
from headrace_dev.simulator.fleet.state import SAMPLED_EACH


class Held(NamedTuple):
    """The requests of one replica at a moment."""

    running: int
    waiting: int

    @property
    def all(self) -> int:
        return self.running + self.waiting


Samples = Sequence[Sequence[Held]]  # of each replica, every SAMPLED_EACH seconds from 0 on


class Served(msgspec.Struct):
    """One request. Times in simulated seconds; None: it was not answered whole, for `failed`'s reason."""

    number: int
    kind: str
    at: float
    prompt: int = 0
    cached: int = 0
    ttft: float | None = None
    tpot: float | None = None
    failed: str = ""


@dataclass(frozen=True)
class Figures:
    """One run of one router, judged from the end of the warm-up. Percentiles leave batch out.

    goodput: requests within their kind's SLO, a second. hit_rate: of prompt tokens. imbalance: the fullest replica over
    the mean, by requests held, averaged over time. queue_over, held_over: while the shared prefix was hot, the longest
    time in seconds that one replica's waiting queue, or all it held, was over twice the mean.
    """

    requests: int
    failed: int
    goodput: float
    within_slo: float
    hit_rate: float
    ttft_p50: float
    ttft_p99: float
    tpot_p50: float
    tpot_p99: float
    imbalance: float
    queue_over: float
    held_over: float

    def row(self) -> dict[str, Any]:
        return asdict(self)


def judge(shape: Shape, served: Sequence[Served], samples: Samples) -> Figures:
    """Raises ValueError where nobody but batch was answered."""
    counted = [one for one in served if one.at >= shape.warmup]
    whole = [one for one in counted if one.ttft is not None and one.tpot is not None]
    met = [one for one in whole if within(shape, one)]
    people = [one for one in whole if one.kind != "batch"]
    held = [[one.all for one in moment] for moment in between(samples, shape.warmup, shape.seconds)]
    hot = between(samples, *shape.shared.hot)
    return Figures(
        requests=len(counted),
        failed=sum(bool(one.failed) for one in counted),
        goodput=len(met) / (shape.seconds - shape.warmup),
        within_slo=len(met) / len(counted),
        hit_rate=sum(one.cached for one in whole) / max(1, sum(one.prompt for one in whole)),
        ttft_p50=percentile([one.ttft or 0 for one in people], 50),
        ttft_p99=percentile([one.ttft or 0 for one in people], 99),
        tpot_p50=percentile([one.tpot or 0 for one in people], 50),
        tpot_p99=percentile([one.tpot or 0 for one in people], 99),
        imbalance=mean(max(each) / mean(each) for each in held if any(each)),
        queue_over=longest_over([[one.waiting for one in moment] for moment in hot]) * SAMPLED_EACH,
        held_over=longest_over([[one.all for one in moment] for moment in hot]) * SAMPLED_EACH,
    )


def within(shape: Shape, one: Served) -> bool:
    slo = shape.slos[one.kind]
    return one.ttft is not None and one.tpot is not None and one.ttft <= slo.ttft and one.tpot <= slo.tpot


def between(samples: Samples, begin: float, end: float) -> Samples:
    return samples[int(begin / SAMPLED_EACH) : int(end / SAMPLED_EACH)]


def longest_over(samples: Sequence[Sequence[int]]) -> int:
    """The most samples in a row in which one replica had more than twice the mean of all."""
    longest = 0
    running = [0] * (len(samples[0]) if samples else 0)
    for held in samples:
        bar = 2 * mean(held)
        running = [count + 1 if own > bar else 0 for own, count in zip(held, running, strict=True)]
        longest = max(longest, *running)
    return longest
