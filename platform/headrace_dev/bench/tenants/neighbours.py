"""`bench neighbours`: what one tenant's requests wait while another calls that has grown to its quotas."""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from django.core.management.base import CommandParser

from headrace_dev.bench.benchmark import Benchmark, Report, Say, Target
from headrace_dev.bench.contestants import Headrace
from headrace_dev.bench.document import document
from headrace_dev.bench.figures import percentile
from headrace_dev.bench.installation import Installation
from headrace_dev.bench.load import Result, Spec
from headrace_dev.bench.measuring import load
from headrace_dev.bench.tenants.growing import grow
from headrace_dev.simulator.process import ScriptedUpstream

_MODEL = "scripted"
_GROWING, _OTHER = "tenant-0", "tenant-1"
_RATIO = 1.2
_NOTE = (
    "From a request's first byte to its first event: admission, placement and the upstream's answer; every request is"
    " settled too. Ratios are of the same round, and of the rounds the median."
)


@dataclass
class _Gateway:
    """One of its own for each size of the growing tenant, so that both are measured by turns."""

    label: str
    web: Headrace
    port: int
    keys: list[str]  # the growing tenant's, the other's


@dataclass
class _Round:
    p50: float
    p99: float
    redis: float


class Neighbours(Benchmark):
    name = "neighbours"
    help = "One tenant's time to the first token while another with nothing, or with all its quotas allow, calls too."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--rate", type=float, default=25, help="requests a second, of each of the two")
        parser.add_argument("--seconds", type=float, default=10, help="of each round")
        parser.add_argument("--rounds", type=int, default=5, help="the report gives medians")

    def run(self, options: dict[str, Any], say: Say) -> Report:
        spec = Spec(rate=options["rate"], seconds=options["seconds"], seed=1, events=2, interval_ms=0, model=_MODEL)
        found: dict[str, list[_Round]] = {}
        with ExitStack() as stack:
            upstream = stack.enter_context(ScriptedUpstream(model=_MODEL, tokens=2))
            logs = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headrace-bench-")))
            small, grown = (_start(stack, upstream.url, logs, is_grown=is_grown, say=say) for is_grown in (False, True))
            for number in range(-1, options["rounds"]):  # the first is for what is made at first use
                for name, gateway, is_calling in (
                    ("the other is silent", small, False),
                    ("the other calls", small, True),
                    ("the other calls, at its quotas", grown, True),
                ):
                    said = _measure(gateway, msgspec.structs.replace(spec, seed=number + 2), is_calling=is_calling)
                    if number >= 0:
                        found.setdefault(name, []).append(said)
                        say(f"round {number + 1}, {name}: p50 {said.p50:.1f} ms, p99 {said.p99:.1f} ms")
        _, few, many = found.values()
        rows = [
            {
                "while": name,
                "p50 ms": median(one.p50 for one in rounds),
                "p99 ms": median(one.p99 for one in rounds),
                "Redis ms a request": median(one.redis for one in rounds),
            }
            for name, rounds in found.items()
        ]
        targets = [
            Target(
                f"{name} with the other at its quotas, over that with it small",
                median(getattr(after, name) / getattr(before, name) for before, after in zip(few, many, strict=True)),
                _RATIO,
            )
            for name in ("p50", "p99")
        ]
        told = {name: options[name] for name in ("rate", "seconds", "rounds")}
        return Report(self.name, told, rows, targets, [_NOTE])


def _start(stack: ExitStack, upstream: str, logs: Path, *, is_grown: bool, say: Say) -> _Gateway:
    said, keys = document(2, upstream=upstream, model=_MODEL)
    said["models"][0]["prices"] = [{"input": 1, "cached_input": 1, "output": 1, "currency": "EUR"}]
    for tenant in said["tenants"]:  # the growing one's will be as many as may be
        budget = {"name": "all", "amount": 1_000_000, "hard": False}  # a hard one wants a worker, which there is not
        tenant["budgets"] = [] if is_grown and tenant["slug"] == _GROWING else [budget]
    installation = Installation(said)
    stack.callback(installation.stop)
    installation.start()
    if is_grown:
        say(f"{_GROWING}: {grow(installation.database_url, _GROWING, _MODEL)}")
    installation.manage("budgets", "rebuild")
    web = Headrace("uvicorn", installation, logs / ("grown" if is_grown else "small"), tenants=2, keys=keys)
    stack.callback(web.stop)
    return _Gateway("grown" if is_grown else "small", web, web.start(), keys)


def _measure(gateway: _Gateway, spec: Spec, *, is_calling: bool) -> _Round:
    """The other tenant's round."""
    growing, other = gateway.keys
    spec = msgspec.structs.replace(spec, port=gateway.port, keys=[other])
    beside = msgspec.structs.replace(spec, keys=[growing], seed=-spec.seed)
    before = gateway.web.redis_seconds()
    with ThreadPoolExecutor(2) as threads:
        asked = [threads.submit(load, each, gateway.label) for each in ([spec, beside] if is_calling else [spec])]
        results: list[Result] = [each.result() for each in asked]
    spent = gateway.web.redis_seconds() - before
    ttft = [nanoseconds / 1e6 for nanoseconds in results[0].ttft]
    number = sum(len(each.ttft) for each in results)
    return _Round(percentile(ttft, 50), percentile(ttft, 99), spent * 1000 / number)
