"""`bench simulator`: a small trace on the real SGLang and on a simulated one with that machine's costs."""

import asyncio
import random
from collections.abc import Sequence
from statistics import mean, median
from typing import Any

import httpx
from django.core.management.base import CommandParser

from headrace_dev.bench.benchmark import Benchmark, BenchmarkFailed, Report, Say, Target
from headrace_dev.bench.real_engine import real_engine
from headrace_dev.bench.simulator import fitting, simulated, workload
from headrace_dev.bench.simulator.asking import Real, Seen
from headrace_dev.simulator.fleet.profile import Costs

WITHIN = 0.20
REPEATS = 2  # of each measurement, before the trace and again after it


class Simulator(Benchmark):
    name = "simulator"
    help = (
        "Replays a small trace on the real SGLang (SGLANG_URL, or `make sglang` and a minute) and on a simulated one."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument("--requests", type=int, default=60)
        parser.add_argument("--rate", type=float, default=0.7, help="requests a second")

    def run(self, options: dict[str, Any], say: Say) -> Report:
        with real_engine(say) as url:
            try:
                seen, twin, costs = asyncio.run(compared(url, options, say))
            except httpx.HTTPError as error:
                raise BenchmarkFailed(f"SGLang at {url}: {error}") from error
        parameters = {name: options[name] for name in ("seed", "requests", "rate")}
        found = [figures("sglang", seen), figures("simulated", twin)]
        return Report(self.name, parameters, found, targets(*found), notes(costs))


async def compared(url: str, options: dict[str, Any], say: Say) -> tuple[list[Seen], list[Seen], Costs]:
    """The costs are measured before and after the trace, since a machine that others use does not stay the same."""
    real, source = Real(url), random.Random(options["seed"])
    try:
        info = await real.info()
        say("warming up")
        await real.replay(workload.singles(source, (40, 1100)))
        singles, batches = await costs_of(real, source)
        await real.flush()
        works = workload.trace(options["seed"], requests=options["requests"], rate=options["rate"])
        tokens = [await real.tokens(work) for work in works]
        say(f"replaying {len(works)} requests over {works[-1].at:.0f} s")
        seen = await real.replay(works)
        more_singles, more_batches = await costs_of(real, source)
    finally:
        await real.close()
    costs = fitting.fit([*singles, *more_singles], [*batches, *more_batches])
    say(f"fitted: {costs}")
    return seen, simulated.replay(simulated.profile(info, costs), seen, tokens), costs


async def costs_of(real: Real, source: random.Random) -> tuple[list[Seen], list[list[Seen]]]:
    singles = [(await real.replay([work]))[0] for _ in range(REPEATS) for work in workload.singles(source)]
    return singles, [await real.replay(batch) for _ in range(REPEATS) for batch in workload.batches(source)]


def figures(name: str, seen: Sequence[Seen]) -> dict[str, Any]:
    return {
        "engine": name,
        "hit_rate": sum(one.cached for one in seen) / sum(one.prompt for one in seen),
        "ttft_mean": mean(one.ttft for one in seen),
        "ttft_p50": median(one.ttft for one in seen),
        "ttft_p90": sorted(one.ttft for one in seen)[int(len(seen) * 0.9)],
        "tpot_mean": mean(one.tpot for one in seen),
    }


def targets(real: dict[str, Any], twin: dict[str, Any]) -> list[Target]:
    names = {"hit_rate": "hit rate", "ttft_mean": "mean TTFT", "ttft_p50": "median TTFT"}
    return [
        Target(f"{text}: how far the simulated one is off", abs(twin[name] / max(real[name], 1e-9) - 1), WITHIN)
        for name, text in names.items()
    ]


def notes(costs: Costs) -> list[str]:
    told = ", ".join(f"{name} {getattr(costs, name):.3g}" for name in costs.__struct_fields__)
    return [f"Costs fitted on this machine, before and after the trace, in seconds: {told}. TPOT is shown, not judged."]
