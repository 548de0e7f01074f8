"""Separate pools for prefill and decode: each step does one kind of work, and the cache travels between.

It buys steady decoding (no prefill stops it) and lets each pool be sized to its own target. It costs a transfer in
every TTFT, a second copy of the weights in small fleets, and capacity that cannot be lent from one pool to the other.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from engines.sizing import memory, prefill, queueing
from engines.sizing.decode import token_time
from engines.sizing.errors import BadValue, OutOfReach
from engines.sizing.fleet import IDLE_RATE, Targets, needed
from engines.sizing.lengths import Workload
from engines.sizing.memory import P99
from engines.sizing.replica import Replica


@dataclass(frozen=True)
class Pools:
    """Replicas and best requests/s of each pool, `spare` more in each; `transfer` seconds to move a prompt's cache."""

    prefill_replicas: int
    decode_replicas: int
    spare: int
    gpus_each: int
    prefill_rate: float
    decode_rate: float
    transfer: float
    ttft_p99: float
    tpot_p99: float

    @property
    def gpus(self) -> int:
        return (self.prefill_replicas + self.decode_replicas + 2 * self.spare) * self.gpus_each

    @property
    def capacity(self) -> float:
        """Requests/s that both pools hold, the spare replicas too: the lesser of the two."""
        prefills, decodes = self.prefill_replicas + self.spare, self.decode_replicas + self.spare
        return min(self.prefill_rate * prefills, self.decode_rate * decodes)

    def gpus_for(self, rate: float) -> int:
        prefills, decodes = needed(rate, self.prefill_rate), needed(rate, self.decode_rate)
        return (prefills + decodes + 2 * self.spare) * self.gpus_each


def size(replica: Replica, workload: Workload, targets: Targets) -> Pools:
    """The fewest replicas of each pool within targets, both on the same hardware.

    Raises BadValue where no network figure is known, OutOfReach where an idle pool misses a target."""
    network = replica.accelerator.network
    if network is None:
        raise BadValue("network", "unknown", f"no sourced network bandwidth for {replica.accelerator.name}; give one")
    link = network * replica.gpus * replica.engine.interconnect_efficiency
    transfer = replica.kv_shape.sequence(workload.prompt.mean) / link

    def ttft(rate: float) -> float:
        return _ttft(replica, workload, rate, link)

    def tpot(rate: float) -> float:
        return _tpot(replica, workload, rate)

    prefill_rate = _highest(ttft, targets.ttft_p99, "TTFT p99")
    decode_rate = _highest(tpot, targets.tpot_p99, "TPOT p99")
    prefills, decodes = needed(workload.rate, prefill_rate), needed(workload.rate, decode_rate)
    return Pools(
        prefill_replicas=prefills,
        decode_replicas=decodes,
        spare=targets.spare,
        gpus_each=replica.gpus,
        prefill_rate=prefill_rate,
        decode_rate=decode_rate,
        transfer=transfer,
        ttft_p99=ttft(workload.rate / prefills),
        tpot_p99=tpot(workload.rate / decodes),
    )


def _ttft(replica: Replica, workload: Workload, rate: float, link: float) -> float:
    """p99 of waiting + reading + moving the cache; infinity when overloaded. The first token is sampled by the
    prefill pool, the transfer delays the second: counted here because a stream is not one until it flows."""
    service = prefill.occupied(replica, workload.new_prompt, workload.prompt.mean * workload.cached)
    waiting = queueing.wait(1, rate, service, service_cv=workload.prompt.cv, arrival_cv=workload.arrival_cv)
    if waiting is None:
        return math.inf
    keep = 1 - workload.cached
    reads = [
        prefill.alone(replica, each * keep, each * workload.cached) + replica.kv_shape.sequence(each) / link
        for each in workload.prompt.grid()
    ]
    return queueing.percentile_of_sum(waiting, reads)


def _tpot(replica: Replica, workload: Workload, rate: float) -> float:
    """p99 TPOT of a pool that only decodes: the step with as many running as a Poisson p99; infinity beyond room."""
    context, _ = workload.resident
    output = workload.output.mean
    room = memory.fit_running(replica, workload)
    token = token_time(replica, 0, context)
    for _ in range(60):
        running = rate * output * token
        if running > room:
            return math.inf
        token = token_time(replica, running, context)
    running_p99 = running + P99 * math.sqrt(running)
    return math.inf if running_p99 > room else token_time(replica, running_p99, context)


def _highest(seconds: Callable[[float], float], target: float | None, name: str) -> float:
    """The highest rate at which `seconds(rate)` is within target (finite, where none is set)."""
    limit = math.inf if target is None else target
    idle = seconds(IDLE_RATE)
    if idle > limit or math.isinf(idle):
        raise OutOfReach(name, target or 0.0, idle, ("more GPUs a replica", "FP8 weights"))
    low, high = IDLE_RATE, IDLE_RATE * 2
    while seconds(high) <= limit and not math.isinf(seconds(high)):
        low, high = high, high * 2
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        value = seconds(middle)
        if value <= limit and not math.isinf(value):
            low = middle
        else:
            high = middle
    return low
