"""A part of the benchmark that runs inside the seeded installation: what it found, and how it travels back."""

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from headrace_dev.bench.benchmark import Target
from headrace_dev.bench.figures import percentile


@dataclass
class Found:
    rows: list[dict[str, Any]] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, plain: dict[str, Any]) -> "Found":
        return cls(plain["rows"], [Target(**target) for target in plain["targets"]], plain["notes"])


def spread(names: list[str], most: int) -> list[str]:
    """At most so many of `names`, evenly, the first among them."""
    return names[:: max(1, -(-len(names) // most))]


def milliseconds(calls: Iterable[Callable[[], object]]) -> list[float]:
    """How long each takes."""
    times = []
    for call in calls:
        began = time.perf_counter()
        call()
        times.append((time.perf_counter() - began) * 1000)
    return times


def row(what: str, *, count: int, seconds: float | None = None, times: list[float] | None = None) -> dict[str, Any]:
    """One line of the report: so many things in so many seconds, or so many questions with their milliseconds."""
    return {
        "what": what,
        "count": count,
        "seconds": seconds,
        "a second": count / seconds if seconds else None,
        "p50 ms": percentile(times, 50) if times else None,
        "p95 ms": percentile(times, 95) if times else None,
        "max ms": max(times) if times else None,
        "queries": None,
    }
