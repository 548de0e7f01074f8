"""`bench lag`: for how long the worst legal request, and the largest scrape, keep everybody else waiting."""

import statistics
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from django.conf import settings
from django.core.management.base import CommandParser

from headrace_dev.bench.benchmark import Benchmark, BenchmarkFailed, Report, Say, Target
from headrace_dev.bench.contestants import Headrace
from headrace_dev.bench.document import document
from headrace_dev.bench.installation import Installation
from headrace_dev.bench.lag.bodies import worst_bodies
from headrace_dev.bench.lag.probe import Probe
from headrace_dev.simulator.process import ScriptedUpstream

LIMIT_MS = 20
MODEL = "scripted"
_NOTE = (
    "Milliseconds that /healthz took longer than at rest while one such request was answered: the longest of each"
    " round, and of the rounds the median, as whatever else runs on the machine delays some. CPU: the most that the web"
    " process worked while one answer was waited for; where it is far below the milliseconds, others had the processor."
)


class Lag(Benchmark):
    name = "lag"
    help = "The longest that one legal request of the worst kind, or one scrape, keeps the event loop from all others."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--rounds", type=int, default=7, help="requests of each kind; the report gives medians")
        parser.add_argument("--series", type=int, default=30_000, help="that /metrics tells")
        parser.add_argument("--bytes", type=int, default=settings.BODY_LIMIT, help="of a body")
        parser.add_argument("--server", choices=("uvicorn", "daphne"), default="uvicorn")

    def run(self, options: dict[str, Any], say: Say) -> Report:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headrace-bench-")))
            upstream = stack.enter_context(ScriptedUpstream(model=MODEL, tokens=1, context=100 * 2**20))
            said, [key] = document(1, upstream=upstream.url, model=MODEL)
            said["models"][0]["context_window"] = 100 * 2**20
            installation = Installation(said)
            stack.callback(installation.stop)
            installation.environment["HEADRACE_BODY_LIMIT"] = str(options["bytes"])
            installation.start()
            installation.run("-m", "headrace_dev.bench.lag.series", str(options["series"]))
            web = Headrace(options["server"], installation, folder / "logs", tenants=1, keys=[key])
            stack.callback(web.stop)
            url = f"http://127.0.0.1:{(port := web.start())}"
            probe = Probe(port, web.process.pid)
            stack.callback(probe.close)
            client = stack.enter_context(httpx.Client(base_url=url, trust_env=False, timeout=60))
            headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
            rows = []
            for name, body in worst_bodies(MODEL, options["bytes"]).items():
                rows.append(_row(name, len(body), options["rounds"], probe, partial(_chat, client, body, headers)))
                say(_told(rows[-1]))
            scraped = len(_scrape(client))
            name = f"/metrics of {options['series']:,} series"
            rows.append(_row(name, scraped, options["rounds"], probe, partial(_scrape, client)))
            say(_told(rows[-1]))
        targets = [Target(f"loop lag, ms, {row['request']}", row["worst ms"], LIMIT_MS) for row in rows]
        targets.append(
            Target("work of the event loop in one piece, CPU ms", max(row["CPU ms"] for row in rows), LIMIT_MS)
        )
        parameters = {each: options[each] for each in ("rounds", "series", "bytes", "server")}
        return Report(self.name, parameters, rows, targets, [_NOTE])


def _row(name: str, size: int, rounds: int, probe: Probe, ask: Callable[[], object]) -> dict[str, Any]:
    worst, cpu = [], []
    for _ in range(rounds):
        with probe:
            ask()
        worst.append(probe.worst_ms)
        cpu.append(probe.cpu_ms)
    return {
        "request": name,
        "MiB": round(size / 2**20, 2),
        "worst ms": round(statistics.median(worst), 2),
        "worst of all ms": round(max(worst), 2),
        "CPU ms": round(statistics.median(cpu), 2),
        "CPU of all ms": round(max(cpu), 2),
    }


def _told(row: dict[str, Any]) -> str:
    return f"{row['request']}: {row['worst ms']:.1f} ms, CPU {row['CPU ms']:.1f} ms"


def _chat(client: httpx.Client, body: bytes, headers: dict[str, str]) -> None:
    answer = client.post("/v1/chat/completions", content=body, headers=headers)
    if answer.status_code != 200:
        raise BenchmarkFailed(f"a legal body was answered {answer.status_code}: {answer.text[:300]}")


def _scrape(client: httpx.Client) -> bytes:
    answer = client.get("/metrics")
    if answer.status_code != 200:
        raise BenchmarkFailed(f"/metrics was answered {answer.status_code}")
    return answer.content
