"""The rows of the overhead report, and its targets."""

from dataclasses import asdict, dataclass
from typing import Any

from headrace_dev.bench.benchmark import Target
from headrace_dev.bench.figures import Figures

DELAY_LIMIT_MS = 10
DAPHNE, UVICORN, ROUTER, LITELLM = "headrace-daphne", "headrace-uvicorn", "sglang-router", "litellm"


@dataclass(frozen=True)
class Measured:
    """One contestant's medians at one rate."""

    label: str
    tenants: int | None
    rate: float
    figures: Figures


def rows(measured: list[Measured]) -> list[dict[str, Any]]:
    return [{"server": m.label, "tenants": m.tenants, "rate": m.rate, **asdict(m.figures)} for m in measured]


def targets(measured: list[Measured]) -> list[Target]:
    """Judged with the most tenants: CPU at the highest rate, times at every rate.

    The faster server is the one that uses less CPU at the highest rate.
    """
    rates = sorted({m.rate for m in measured})
    high = rates[-1]
    most = max((m.tenants or 0 for m in measured), default=0)
    at = {(m.label, m.rate): m.figures for m in measured if m.tenants in {None, most}}
    servers = [label for label in (UVICORN, DAPHNE) if (label, high) in at]
    faster = min(servers, key=lambda label: at[label, high].cpu_ms, default="")
    ours, router, litellm = at.get((faster, high)), at.get((ROUTER, high)), at.get((LITELLM, high))
    found = [
        Target(f"CPU, times sglang-router's, {high:g}/s", ratio(ours, router), 3),
        Target(f"CPU, as a part of LiteLLM's, {high:g}/s", ratio(ours, litellm), 1 / 15),
        Target(f"CPU under Daphne, as a part of LiteLLM's, {high:g}/s", ratio(at.get((DAPHNE, high)), litellm), 1 / 10),
    ]
    for rate in rates:
        run, other = at.get((faster, rate)), at.get((ROUTER, rate))
        more = None if run is None or other is None else run.added_ttft_p99_ms - other.added_ttft_p99_ms
        found.append(Target(f"added TTFT p99 beyond sglang-router's, ms, {rate:g}/s", more, 0))
    for label in (UVICORN, DAPHNE):
        for rate in rates:
            delayed = at.get((label, rate))
            delay = None if delayed is None else delayed.delay_p99_ms
            found.append(Target(f"event delay p99, ms, {label}, {rate:g}/s", delay, DELAY_LIMIT_MS))
    broken = sum(m.figures.failed for m in measured if m.label in {UVICORN, DAPHNE})
    return [*found, *growth(measured), Target("Headrace's streams that did not come whole", broken, 0)]


def growth(measured: list[Measured]) -> list[Target]:
    """CPU from the fewest tenants to the most, at the highest rate; flat but for noise is the aim."""
    found = []
    for label in (UVICORN, DAPHNE):
        ours = [m for m in measured if m.label == label]
        ours = sorted((m for m in ours if m.rate == max(o.rate for o in ours)), key=lambda m: m.tenants or 0)
        if len(ours) > 1:
            text = f"CPU, {ours[-1].tenants} tenants to {ours[0].tenants}, {label}, {ours[0].rate:g}/s"
            found.append(Target(text, ratio(ours[-1].figures, ours[0].figures), 1.25))
    return found


def ratio(one: Figures | None, other: Figures | None) -> float | None:
    return None if one is None or other is None else one.cpu_ms / other.cpu_ms
