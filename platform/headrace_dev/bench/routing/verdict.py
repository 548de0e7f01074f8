"""The rows of the routing report, each figure the worst of the seeds, and its targets."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from headrace_dev.bench.benchmark import Target
from headrace_dev.bench.routing.entrants import OURS, ROUND_ROBIN
from headrace_dev.bench.routing.served import Figures

Runs = Mapping[str, Mapping[int, Figures]]  # by entrant, by seed

MORE_IS_BETTER = {"requests", "goodput", "within_slo", "hit_rate"}


def rows(runs: Runs) -> list[dict[str, Any]]:
    return [{"router": name, **worst(list(of.values())).row()} for name, of in runs.items()]


def worst(runs: list[Figures]) -> Figures:
    """Each figure's own worst."""
    chosen = {
        field.name: (min if field.name in MORE_IS_BETTER else max)(getattr(run, field.name) for run in runs)
        for field in fields(Figures)
    }
    return Figures(**chosen)


def targets(runs: Runs, pooled: Mapping[int, float]) -> list[Target]:
    """Each is judged seed by seed, and the worst counts."""
    ours = runs.get(OURS, {})
    routers = [of for name, of in runs.items() if name.startswith("sglang-router")]
    even = runs.get(ROUND_ROBIN, {})
    best = {seed: max(of[seed].goodput for of in routers) for seed in ours if routers}
    return [
        Target(
            "goodput, times sglang-router's at its best", least({s: ratio(ours[s], best[s]) for s in best}), 1.2, True
        ),
        Target(
            "goodput, times round robin's",
            least({s: ratio(ours[s], even[s].goodput) for s in ours if s in even}),
            2,
            True,
        ),
        Target(
            "hit rate, part of one pooled cache's", least({s: ours[s].hit_rate / pooled[s] for s in ours}), 0.9, True
        ),
        Target(
            "longest time a replica's queue was over twice the mean while a prefix was hot, s",
            max((one.queue_over for one in ours.values()), default=None),
            5,
        ),
        Target("requests that were not answered whole", float(sum(one.failed for one in ours.values())), 0),
    ]


def ratio(ours: Figures, theirs: float) -> float:
    return ours.goodput / max(theirs, 1e-9)


def least(values: Mapping[int, float]) -> float | None:
    return min(values.values(), default=None)
