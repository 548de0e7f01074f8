"""Who is compared: Headrace with each of its policies, and SGLang's router as it comes and with its best flags."""

from collections.abc import Callable
from dataclasses import dataclass

from headrace_dev.bench.routing import sglang_policies
from headrace_dev.bench.routing.gateway import Gateway
from headrace_dev.bench.routing.router import Router
from headrace_dev.bench.traces import Shape
from routing.policies import DEFAULT, POLICIES

Make = Callable[[Shape, int], Router]
OURS = f"headrace {DEFAULT}"
ROUND_ROBIN = "headrace round_robin"


@dataclass(frozen=True)
class Entrant:
    """`policy`: Headrace's, for its route. `flags`: the router's. `virtual` makes the one of a run in virtual time."""

    name: str
    virtual: Make
    policy: str | None = None
    flags: tuple[str, ...] = ()

    @property
    def is_router(self) -> bool:
        return self.policy is None


def _headrace(policy: str) -> Entrant:
    return Entrant(f"headrace {policy}", lambda shape, seed: Gateway(shape, policy, seed), policy=policy)


def _cache_aware(label: str, threshold: float, absolute: int, relative: float) -> Entrant:
    flags = ["--cache-threshold", str(threshold), "--balance-abs-threshold", str(absolute)]
    flags += ["--balance-rel-threshold", str(relative)]
    return Entrant(
        f"sglang-router {label}",
        lambda shape, seed: sglang_policies.CacheAware(
            shape.replicas, threshold=threshold, absolute=absolute, relative=relative
        ),
        flags=("--policy", "cache_aware", *flags),
    )


# Its defaults are 0.3, 64 and 1.5. The others are the best of a grid in virtual time, apart from their neighbours:
# thresholds 0.1 to 0.7, differences of 2 to 128 requests, ratios 1.05 to 3 (72 settings, seed 1).
ENTRANTS: dict[str, Entrant] = {
    entrant.name: entrant
    for entrant in (
        *(_headrace(policy) for policy in POLICIES),
        _cache_aware("default", 0.3, 64, 1.5),
        _cache_aware("0.5/2/3", 0.5, 2, 3.0),
        _cache_aware("0.3/8/1.5", 0.3, 8, 1.5),
        Entrant(
            "sglang-router power_of_two",
            lambda shape, seed: sglang_policies.PowerOfTwo(shape.replicas, seed),
            flags=("--policy", "power_of_two"),
        ),
    )
}
