"""`bench routing`: which requests go to which replica, and what that is worth."""

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
from django.core.management.base import CommandParser

from headrace_dev.bench.benchmark import Benchmark, BenchmarkFailed, Report, Say
from headrace_dev.bench.routing.entrants import ENTRANTS, Entrant
from headrace_dev.bench.routing.over_http import OverHTTP
from headrace_dev.bench.routing.pooled import pooled_hit_rate
from headrace_dev.bench.routing.prepared import Prepared, prepare
from headrace_dev.bench.routing.served import Figures
from headrace_dev.bench.routing.verdict import rows, targets
from headrace_dev.bench.routing.virtual import VirtualRun
from headrace_dev.bench.traces import ROUTING, Shape, at_load, generate, load

Run = Callable[[Entrant, int, list[Prepared]], Figures]


def names(text: str) -> list[str]:
    """Entrants whose names contain one of these."""
    parts = text.split(",")
    chosen = [name for name in ENTRANTS if any(part in name for part in parts)]
    if not chosen:
        raise ValueError(text)
    return chosen


class Routing(Benchmark):
    name = "routing"
    help = "Replays a multi-tenant trace on 8 simulated SGLang replicas behind Headrace and behind SGLang's router."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--seed", type=int, default=1, help="the first")
        parser.add_argument("--seeds", type=int, default=5, help="how many; the report gives the worst")
        parser.add_argument("--virtual", action="store_true", help="in virtual time, without HTTP; seconds a run")
        parser.add_argument("--late", type=float, default=0.0, help="of --virtual: real ms at p99 that messages take")
        parser.add_argument("--replicas", type=int, help="another size, with as many arrivals for each")
        parser.add_argument("--load", type=float, default=1.0, help="times the trace's arrivals")
        parser.add_argument("--trace", type=Path, default=ROUTING, help="a file like traces/routing.yaml")
        parser.add_argument("--scale", type=float, help="real seconds a simulated one takes; the trace says which")
        parser.add_argument("--only", type=names, default=list(ENTRANTS), help=f"parts of {', '.join(ENTRANTS)}")

    def run(self, options: dict[str, Any], say: Say) -> Report:
        shape, arrivals = sized(load(options["trace"]), options["replicas"], options["load"])
        if options["scale"]:
            shape = msgspec.structs.replace(shape, scale=options["scale"])
        seeds = [options["seed"] + number for number in range(options["seeds"])]
        chosen = [ENTRANTS[name] for name in options["only"]]
        late: list[tuple[float, float]] = []
        if options["virtual"]:
            runs, pooled = measured(shape, chosen, seeds, virtually(shape, options["late"] / 1000 / shape.scale), say)
        else:
            with ExitStack() as stack:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headrace-bench-")))
                http = OverHTTP(shape, options["trace"], arrivals, folder, stack)
                chosen = [entrant for entrant in chosen if http.is_installed(entrant)]
                runs, pooled = measured(shape, chosen, seeds, lambda who, seed, _: http.run(who, seed, say), say)
                late = http.late
        told = ("seed", "seeds", "virtual", "late", "load", "only")
        parameters = {name: options[name] for name in told} | {
            "replicas": shape.replicas,
            "trace": shape.name,
            "scale": shape.scale,
        }
        return Report(self.name, parameters, rows(runs), targets(runs, pooled), notes(shape, pooled, late))


def sized(shape: Shape, replicas: int | None, factor: float) -> tuple[Shape, float]:
    """The trace on so many replicas (None: its own number), `factor` times its arrivals for each of them; and how many
    times its arrivals that is. Raises BenchmarkFailed."""
    size = shape.replicas if replicas is None else replicas
    if size < 1:
        raise BenchmarkFailed("A fleet has at least one replica.")
    arrivals = factor * size / shape.replicas
    return msgspec.structs.replace(at_load(shape, arrivals), replicas=size), arrivals


def virtually(shape: Shape, late: float) -> Run:
    return lambda entrant, seed, requests: VirtualRun(shape, entrant.virtual(shape, seed), late=late).run(requests)


def measured(
    shape: Shape, chosen: list[Entrant], seeds: list[int], run: Run, say: Say
) -> tuple[dict[str, dict[int, Figures]], dict[int, float]]:
    """The figures of each entrant by seed, and the hit rate of one pooled cache."""
    runs: dict[str, dict[int, Figures]] = {}
    pooled: dict[int, float] = {}
    for seed in seeds:
        requests = prepare(generate(shape, seed))
        pooled[seed] = pooled_hit_rate(shape, requests)
        say(f"seed {seed}: {len(requests)} requests; one pooled cache would hit {pooled[seed]:.1%}")
        for entrant in chosen:
            figures = run(entrant, seed, requests)
            runs.setdefault(entrant.name, {})[seed] = figures
            say(f"  {entrant.name}: {line(figures)}")
    return runs, pooled


def line(run: Figures) -> str:
    return (
        f"goodput {run.goodput:.2f}/s ({run.within_slo:.0%}), hits {run.hit_rate:.1%}, TTFT p99 {run.ttft_p99:.2f} s,"
        f" TPOT p99 {run.tpot_p99 * 1000:.0f} ms"
    )


def notes(shape: Shape, pooled: dict[int, float], late: list[tuple[float, float]]) -> list[str]:
    found = [
        f"{shape.replicas} replicas of {shape.replica.name}; {shape.seconds:g} simulated s of arrivals, judged after"
        f" {shape.warmup:g} s; each figure is the worst of its seeds. Times are simulated seconds. Percentiles leave"
        " batch out. goodput: requests a second within the SLO of their kind (traces/routing.yaml). imbalance: fullest"
        " replica over mean. queue_over, held_over: the longest time that one's waiting queue, or all it held, was over"
        " twice the mean while the shared prefix was hot.",
        f"One cache as large as all replicas' would hit {min(pooled.values()):.1%} of prompt tokens at the least.",
    ]
    if late:
        clients, steps = (max(each) for each in zip(*late, strict=True))
        found.append(f"Late at p99, real ms, in the worst run: clients {clients:.1f}, simulated steps {steps:.1f}.")
        if max(clients, steps) > 20:
            found.append("The machine was too busy for this scale: repeat on a quiet one, or with a larger --scale.")
    else:
        found.append("In virtual time the policies run as in the gateway; SGLang's router is its documented formula.")
    return found
