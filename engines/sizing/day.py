"""The load over a day: 24 hourly shares of the peak rate."""

from dataclasses import dataclass
from typing import Protocol

from engines.sizing.checks import known, within
from engines.sizing.errors import BadValue
from engines.sizing.lengths import Workload

# Shapes to start from, not measurements: `--from-usage` takes the ledger's own.
CURVES: dict[str, tuple[float, ...]] = {
    "flat": (1.0,) * 24,
    "office": (
        *(0.05,) * 6, 0.10, 0.30, 0.65, 0.90, 1.00, 0.95, 0.75, 0.85, 1.00, 0.95, 0.85, 0.65, 0.35, 0.20, 0.12, 0.10,
        0.08, 0.05,
    ),
    "consumer": (
        0.45, 0.32, 0.24, 0.20, 0.20, 0.24, 0.32, 0.42, 0.52, 0.60, 0.65, 0.70, 0.74, 0.74, 0.73, 0.74, 0.77, 0.82,
        0.88, 0.94, 1.00, 0.97, 0.82, 0.62,
    ),
}  # fmt: skip


class Capacity(Protocol):
    """What a day and its cost need of a fleet, of one pool or of two."""

    @property
    def gpus(self) -> int: ...
    @property
    def capacity(self) -> float: ...
    def gpus_for(self, rate: float) -> int: ...


@dataclass(frozen=True)
class Day:
    """`requests` a day; GPU-hours with the peak's fleet left on, and with replicas following the hours (each hour
    at least one, plus the spare); `utilisation` = mean rate / the rate the fleet could hold."""

    requests: float
    input_tokens: float
    output_tokens: float
    gpu_hours: float
    gpu_hours_following: float
    utilisation: float
    gpus_by_hour: tuple[int, ...]


def curve(name: str) -> tuple[float, ...]:
    return CURVES[known("load curve", name, CURVES)]


def check_curve(shares: tuple[float, ...]) -> tuple[float, ...]:
    """24 shares of the peak between 0 and 1, not all 0; a measured average day may stay below 1. Raises BadValue."""
    if len(shares) != 24:
        raise BadValue("curve", len(shares), "needs 24 hourly shares of the peak")
    for hour, share in enumerate(shares):
        within(f"curve hour {hour}", share, 0, 1)
    if max(shares) <= 0:
        raise BadValue("curve", 0, "needs an hour with load")
    return shares


def over_day(fleet: Capacity, workload: Workload, shares: tuple[float, ...]) -> Day:
    """Sums over the hours of rate x share x 3,600 requests and the GPUs that hold them."""
    hours = tuple(fleet.gpus_for(workload.rate * share) for share in shares)
    requests = sum(workload.rate * share * 3600 for share in shares)
    return Day(
        requests=requests,
        input_tokens=requests * workload.prompt.mean,
        output_tokens=requests * workload.output.mean,
        gpu_hours=24.0 * fleet.gpus,
        gpu_hours_following=float(sum(hours)),
        utilisation=requests / 86_400 / fleet.capacity,
        gpus_by_hour=hours,
    )
