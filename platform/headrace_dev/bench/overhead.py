"""`bench overhead`: what a gateway adds to a stream, in CPU and in time, beside other routers."""

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from headrace.stack import ports
from headrace_dev.bench.benchmark import Benchmark, Report, Say
from headrace_dev.bench.contestants import Contestant, Direct, Headrace, Server
from headrace_dev.bench.document import document
from headrace_dev.bench.figures import Figures, middle, percentile
from headrace_dev.bench.installation import Installation
from headrace_dev.bench.load import Spec
from headrace_dev.bench.measuring import measure
from headrace_dev.bench.peers import litellm, sglang_router
from headrace_dev.bench.verdict import DAPHNE, LITELLM, ROUTER, UVICORN, Measured, rows, targets
from headrace_dev.simulator.process import ScriptedUpstream

MODEL = "scripted"
NAMES = ("direct", DAPHNE, UVICORN, ROUTER, LITELLM)


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def names(text: str) -> list[str]:
    chosen = text.split(",")
    if unknown := set(chosen) - set(NAMES):
        raise ValueError(unknown)
    return ["direct", *(name for name in NAMES[1:] if name in chosen)]


class Overhead(Benchmark):
    name = "overhead"
    help = "CPU, first-token time and event delay that a gateway adds to a stream: Headrace, SGLang's router, LiteLLM."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--repeat", type=int, default=5, help="rounds; the report gives medians")
        parser.add_argument("--tenants", type=numbers, default=[1, 50, 500], help="sizes of Headrace to measure")
        parser.add_argument("--rates", type=numbers, default=[5, 40], help="arrivals a second, at random")
        parser.add_argument("--seconds", type=float, default=8, help="of load in each run")
        parser.add_argument("--warmup", type=float, default=3, help="seconds of load before")
        parser.add_argument("--events", type=int, default=100, help="a stream")
        parser.add_argument("--interval-ms", type=float, default=5, help="between events")
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument("--only", type=names, default=list(NAMES), help=f"some of {','.join(NAMES)}")

    def run(self, options: dict[str, Any], say: Say) -> Report:
        runs: dict[tuple[Contestant, float], list[Figures]] = {}
        late: list[int] = []
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headrace-bench-")))
            upstream = stack.enter_context(ScriptedUpstream(model=MODEL, tokens=options["events"]))
            contestants = self._contestants(options, upstream, folder, stack, say)
            for number in range(options["repeat"]):
                spec = Spec(
                    seed=options["seed"] + number,
                    seconds=options["seconds"],
                    events=options["events"],
                    interval_ms=options["interval_ms"],
                    model=MODEL,
                )
                direct: dict[float, Figures] = {}
                for contestant in contestants:
                    for rate, result, run in measure(
                        contestant, spec, rates=options["rates"], warmup=options["warmup"]
                    ):
                        run = run.over(direct.setdefault(rate, run))
                        runs.setdefault((contestant, rate), []).append(run)
                        late += result.late
                        say(f"round {number + 1} {contestant} {rate:g}/s: {line(run)}")
                        for why in result.failed[:3]:
                            say(f"  a stream failed: {why}")
                upstream.wait_until_idle()
        measured = [Measured(c.label, c.tenants, rate, middle(of)) for (c, rate), of in runs.items()]
        told = ("repeat", "tenants", "rates", "seconds", "warmup", "events", "interval_ms", "seed", "only")
        parameters = {name: options[name] for name in told}
        return Report(self.name, parameters, rows(measured), targets(measured), notes(parameters, late))

    def _contestants(
        self, options: dict[str, Any], upstream: ScriptedUpstream, folder: Path, stack: ExitStack, say: Say
    ) -> list[Contestant]:
        chosen = options["only"]
        found: list[Contestant] = [Direct(upstream.port)]
        servers = [name.removeprefix("headrace-") for name in chosen if name.startswith("headrace-")]
        for tenants in options["tenants"] if servers else []:
            said, keys = document(tenants, upstream=upstream.url, model=MODEL)
            installation = Installation(said)
            stack.callback(installation.stop)
            say(f"setting up Headrace with {tenants} tenants")
            installation.start()
            found += [Headrace(s, installation, folder / "logs", tenants=tenants, keys=keys) for s in servers]
        if "sglang-router" in chosen and sglang_router.PYTHON.exists():
            found.append(Server("sglang-router", lambda port: router(port, upstream.url), folder / "logs"))
        if "litellm" in chosen and litellm.PROGRAM.exists():
            found.append(
                Server("litellm", lambda port: litellm.LiteLLM(port, upstream.url, MODEL, folder), folder / "logs")
            )
        for contestant in found:
            stack.callback(contestant.stop)
        return found


def router(port: int, upstream: str) -> sglang_router.SglangRouter:
    with ports.reserve() as holder:
        return sglang_router.SglangRouter(port, ports.number(holder), [upstream])


def line(run: Figures) -> str:
    return f"{run.cpu_ms:.2f} ms CPU a stream, TTFT p99 {run.ttft_p99_ms:.1f} ms, delay p99 {run.delay_p99_ms:.2f} ms"


def notes(parameters: dict[str, Any], late: list[int]) -> list[str]:
    behind = percentile(late, 99) / 1e6
    found = [
        f"{parameters['events']} events {parameters['interval_ms']:g} ms apart, random arrivals for"
        f" {parameters['seconds']:g} s, median of {parameters['repeat']}. Clients were late by {behind:.1f} ms (p99).",
        "CPU: the gateway's process with all threads and children, per stream, beyond what it uses idle (idle_cpu_ms:"
        " in a second). Headrace checks keys, takes and settles twelve meters, records usage and keeps metrics; the"
        " others do none of it.",
    ]
    if behind > 20:
        found.append("The machine was busy with other things: repeat on a quiet one.")
    return found
