"""How many replicas for a rate, at p99 targets."""

import math
from dataclasses import dataclass

from engines.sizing import memory
from engines.sizing.checks import within
from engines.sizing.errors import OutOfReach
from engines.sizing.latency import Load, at_rate
from engines.sizing.lengths import Workload
from engines.sizing.replica import Replica

IDLE_RATE = 1e-4  # requests/s: an idle replica, for what latency is at best


@dataclass(frozen=True)
class Targets:
    """Seconds at p99; None: not asked for. `spare`: replicas beyond the need, for failures and deploys."""

    ttft_p99: float | None = None
    tpot_p99: float | None = None
    spare: int = 0

    def __post_init__(self) -> None:
        if self.ttft_p99 is not None:
            within("TTFT p99", self.ttft_p99, 0.001, 3600, unit="seconds")
        if self.tpot_p99 is not None:
            within("TPOT p99", self.tpot_p99, 0.0001, 60, unit="seconds")
        within("spare replicas", self.spare, 0, 10_000)

    def missed(self, load: Load | None) -> str | None:
        """The first thing a load violates: memory, TTFT p99, TPOT p99 or throughput (cannot keep up)."""
        if load is None:
            return "throughput"
        if not load.fits:
            return "memory"
        if self.ttft_p99 is not None and load.ttft_p99 > self.ttft_p99:
            return "TTFT p99"
        if self.tpot_p99 is not None and load.tpot_p99 > self.tpot_p99:
            return "TPOT p99"
        return None


@dataclass(frozen=True)
class Fleet:
    """`replicas` serve the peak (without `spare`); `limit` is what breaks first beyond `best_rate` requests/s a
    replica, `bound` what its time goes to there."""

    replicas: int
    spare: int
    gpus_each: int
    best_rate: float
    limit: str
    load: Load

    @property
    def gpus(self) -> int:
        return (self.replicas + self.spare) * self.gpus_each

    @property
    def capacity(self) -> float:
        """Requests/s that all replicas together hold, the spare ones too."""
        return self.best_rate * (self.replicas + self.spare)

    def gpus_for(self, rate: float) -> int:
        return (self.needed(rate) + self.spare) * self.gpus_each

    @property
    def bound(self) -> str:
        return "memory" if self.limit == "memory" else self.load.bound

    def needed(self, rate: float) -> int:
        """Replicas for another rate."""
        return needed(rate, self.best_rate)


def needed(rate: float, best: float) -> int:
    """Replicas for `rate` when each holds `best`: equal, independent shares, so rate / best rounded up; at least 1."""
    return max(1, math.ceil(rate / best - 1e-9))


def best_rate(replica: Replica, workload: Workload, targets: Targets) -> tuple[float, str]:
    """The highest rate (requests/s) one replica takes within targets, and what breaks just beyond it.

    Raises OutOfReach where an idle replica misses a target already, DoesNotFit where the model does not fit."""
    memory.plan(replica)
    room = memory.fit_running(replica, workload)
    idle = at_rate(replica, workload, IDLE_RATE, room=room)
    if (missed := targets.missed(idle)) is not None:
        raise _out_of_reach(missed, targets, idle)
    low, high = IDLE_RATE, IDLE_RATE * 2
    while targets.missed(at_rate(replica, workload, high, room=room)) is None:
        low, high = high, high * 2
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        if targets.missed(at_rate(replica, workload, middle, room=room)) is None:
            low = middle
        else:
            high = middle
    return low, targets.missed(at_rate(replica, workload, high, room=room)) or "throughput"


def size(replica: Replica, workload: Workload, targets: Targets) -> Fleet:
    """The fewest replicas that hold the workload's peak rate within targets: ceil(rate / best_rate)."""
    best, limit = best_rate(replica, workload, targets)
    count = needed(workload.rate, best)
    load = at_rate(replica, workload, workload.rate / count)
    if load is None:  # best_rate is a rate that is held, and this one is no higher
        raise AssertionError("a held rate became unheld")
    return Fleet(count, targets.spare, replica.gpus, best, limit, load)


def _out_of_reach(missed: str, targets: Targets, idle: Load | None) -> OutOfReach:
    if missed == "TTFT p99" and idle is not None:
        cures: tuple[str, ...] = ("more GPUs a replica", "FP8 weights", "a cached share of prompts", "shorter prompts")
        return OutOfReach(missed, targets.ttft_p99 or 0, idle.ttft_p99, cures)
    if missed == "TPOT p99" and idle is not None:
        cures = ("more GPUs a replica (tensor parallel)", "FP8 or INT4 weights", "speculative decoding")
        return OutOfReach(missed, targets.tpot_p99 or 0, idle.tpot_p99, cures)
    return OutOfReach(missed, 0, 0, ("more GPUs a replica", "smaller weights", "FP8 KV", "shorter sequences"))
