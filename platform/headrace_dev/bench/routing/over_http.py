"""Runs over HTTP: a simulated fleet, a gateway before it and the trace's clients, each a process of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

import msgspec
from django.conf import settings

from headrace.stack import ports
from headrace.stack.parts.collector import Collector
from headrace.stack.parts.web import Web
from headrace.stack.process import Process
from headrace_dev.bench.benchmark import BenchmarkFailed, Say
from headrace_dev.bench.contestants import Server
from headrace_dev.bench.document import document
from headrace_dev.bench.figures import percentile
from headrace_dev.bench.installation import Installation
from headrace_dev.bench.peers.sglang_router import PYTHON, SglangRouter
from headrace_dev.bench.routing.entrants import Entrant
from headrace_dev.bench.routing.prepared import OWN, SHARED
from headrace_dev.bench.routing.replay import Result, Spec
from headrace_dev.bench.routing.served import Figures, Held, Samples, judge
from headrace_dev.bench.traces import Shape
from headrace_dev.simulator.fleet.process import FleetProcess

MODEL = "simulated"


class OverHTTP:
    """One fleet and one Headrace for all runs; caches, indexes and gateways begin each run anew.

    `late` collects how late the clients sent and the simulation stepped, in real ms at the 99th percentile of each run.
    """

    def __init__(self, shape: Shape, trace: Path, load: float, folder: Path, stack: ExitStack) -> None:
        self._shape, self._trace, self._load, self._scale = shape, trace, load, shape.scale
        self._logs = folder / "logs"
        self._stack = stack
        self._installation: Installation | None = None
        self._keys: list[str] = []
        self.late: list[tuple[float, float]] = []
        self._fleet = stack.enter_context(
            FleetProcess(shape.replica, replicas=shape.replicas, scale=shape.scale, model=MODEL)
        )

    @staticmethod
    def is_installed(entrant: Entrant) -> bool:
        return not entrant.is_router or PYTHON.exists()

    def run(self, entrant: Entrant, seed: int, say: Say) -> Figures:
        """Raises BenchmarkFailed."""
        with self._gateway(entrant, say) as (port, keys):
            spec = Spec(
                trace=str(self._trace),
                seed=seed,
                load=self._load,
                scale=self._scale,
                port=port,
                keys=keys,
                fleet=self._fleet.urls[0],
            )
            result = replay(spec, entrant.name)
        stats = self._fleet.stats()
        self.late.append((percentile(result.late, 99) * 1000, float(stats["late_p99_ms"])))
        for one in [one for one in result.served if one.failed][:3]:
            say(f"  a request failed: {one.failed[:200]}")
        return judge(self._shape, result.served, samples(stats))

    @contextmanager
    def _gateway(self, entrant: Entrant, say: Say) -> Iterator[tuple[int, list[str]]]:
        if entrant.policy is None:
            server = Server(entrant.name, lambda port: router(port, self._fleet.urls, entrant.flags), self._logs)
            with stopped_after(server):
                yield server.start(), []
            return
        installation = self._headrace(entrant.policy, say)
        web = Server(
            entrant.name, lambda port: Web(port, "uvicorn", installation.environment, drain_seconds=5), self._logs
        )
        collector = Process(Collector(settings.ROOT, installation.environment), self._logs)
        with stopped_after(collector), stopped_after(web):
            collector.start()
            yield web.start(), self._keys

    def _headrace(self, policy: str, say: Say) -> Installation:
        if self._installation is None:
            say("setting up Headrace")
            self._installation = Installation({})
            self._stack.callback(self._installation.stop)
            self._installation.start()
            self._document, self._keys = document(self._shape.tenants, upstream="", model=MODEL)
        self._installation.apply(routed(self._document, self._fleet.urls, policy))
        return self._installation


class Stoppable(Protocol):
    def stop(self) -> None: ...


@contextmanager
def stopped_after(part: Stoppable) -> Iterator[None]:
    try:
        yield
    finally:
        part.stop()


def routed(said: dict[str, Any], urls: list[str], policy: str) -> dict[str, Any]:
    """`said` with the fleet as its pool and the trace's two models on it: a cache for each tenant, and a shared one."""
    route = {"targets": [{"pool": MODEL}], "policy": policy}
    scopes = {OWN: "tenant", SHARED: "shared"}
    return said | {
        "pools": [{"name": MODEL, "engine": "sglang", "model": MODEL, "replicas": urls}],
        "models": [
            {
                "name": name,
                "context_window": 131072,
                "default_max_tokens": 256,
                "route": route | {"cache_scope": scope},
            }
            for name, scope in scopes.items()
        ],
    }


def router(port: int, urls: list[str], flags: tuple[str, ...]) -> SglangRouter:
    with ports.reserve() as holder:
        return SglangRouter(port, ports.number(holder), urls, flags)


def samples(stats: dict[str, Any]) -> Samples:
    return list(zip(*([Held(one[1], one[2]) for one in each["samples"]] for each in stats["replicas"]), strict=False))


def replay(spec: Spec, label: str) -> Result:
    done = subprocess.run(
        [sys.executable, "-m", "headrace_dev.bench.routing.replay"],
        input=msgspec.json.encode(spec),
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(settings.ROOT / "platform"), str(settings.ROOT)])},
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise BenchmarkFailed(f"the clients of {label} failed: {done.stderr.decode()[-2000:]}")
    return msgspec.json.decode(done.stdout, type=Result)
