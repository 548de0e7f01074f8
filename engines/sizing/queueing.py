"""Waiting, and what the 99th percentile of a sum is.

Limits, said plainly: arrivals at a replica are taken as independent of its state (a router that sends to the least
loaded does better); the tail of a wait is taken as exponential, which is exact for M/M/c and asymptotic otherwise
(Kingman); service times are independent. Bursts wider than arrival_cv says, and long correlations, are not seen.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Wait:
    """P(wait > t) = probability x exp(-t / scale), seconds."""

    probability: float
    scale: float

    def beyond(self, seconds: float) -> float:
        if seconds < 0:
            return 1.0
        return self.probability * math.exp(-seconds / self.scale) if self.scale > 0 else 0.0

    @property
    def mean(self) -> float:
        return self.probability * self.scale

    def quantile(self, level: float) -> float:
        """The wait that a share `level` of requests does not exceed."""
        return 0.0 if self.probability <= 1 - level else self.scale * math.log(self.probability / (1 - level))


def erlang_c(servers: int, offered: float) -> float:
    """Probability that an arrival finds all `servers` busy at `offered` erlangs (Erlang 1917), by the stable
    recursion on Erlang B: B(0) = 1, B(n) = a B(n-1) / (n + a B(n-1)); C = B / (1 - (a / n) (1 - B))."""
    if offered >= servers:
        return 1.0
    blocked = 1.0
    for count in range(1, servers + 1):
        blocked = offered * blocked / (count + offered * blocked)
    return blocked / (1 - offered / servers * (1 - blocked))


def wait(servers: int, rate: float, service: float, *, service_cv: float, arrival_cv: float) -> Wait | None:
    """Waiting before one of `servers` takes a request: Allen-Cunneen's mean for G/G/c,
    Wq = C(c, a) / (c / s - rate) x (ca^2 + cs^2) / 2, exact (Pollaczek-Khinchine) for M/G/1, with an exponential
    tail of the same mean given that one waits. None where the load is 1 or more: no wait is long enough."""
    offered = rate * service
    if offered >= servers:
        return None
    probability = erlang_c(servers, offered)
    return Wait(probability, service / (servers - offered) * (arrival_cv**2 + service_cv**2) / 2)


def percentile_of_sum(waiting: Wait, services: Sequence[float], level: float = 0.99) -> float:
    """The t with P(wait + service <= t) = level; `services` are equally likely. By bisection of
    P(wait + service > t) = mean over services of P(wait > t - service)."""

    def beyond(seconds: float) -> float:
        return sum(waiting.beyond(seconds - each) for each in services) / len(services)

    high = max(services) + waiting.quantile(level + (1 - level) / 2) + 1e-9
    return bisect(beyond, 1 - level, 0.0, high)


def bisect(function: Callable[[float], float], target: float, low: float, high: float) -> float:
    """x in [low, high] where a falling function passes `target`, to 1 in 100,000."""
    while high - low > 1e-5 * high:
        middle = (low + high) / 2
        if function(middle) > target:
            low = middle
        else:
            high = middle
    return high
