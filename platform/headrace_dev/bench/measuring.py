"""One run of one contestant: start it, warm it up, see what it costs idle, load it at each rate, stop it."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import msgspec
from django.conf import settings

from headrace_dev.bench.benchmark import BenchmarkFailed
from headrace_dev.bench.contestants import Contestant
from headrace_dev.bench.figures import Figures, Spent, figures
from headrace_dev.bench.load import Result, Spec

IDLE_SECONDS = 2.0
AFTER_SECONDS = 0.3  # what a server does after the last stream is part of the price


def measure(
    contestant: Contestant, spec: Spec, *, rates: list[float], warmup: float
) -> Iterator[tuple[float, Result, Figures]]:
    """For each rate, lowest first, the raw result and its figures. One that cannot keep up has its backlog run out."""
    port = contestant.start()
    try:
        spec = msgspec.structs.replace(spec, port=port, keys=contestant.keys)
        load(msgspec.structs.replace(spec, rate=min(rates), seconds=warmup, seed=-spec.seed), contestant.label)
        time.sleep(AFTER_SECONDS)
        before = spent(contestant)
        time.sleep(IDLE_SECONDS)
        idle = spent(contestant) - before
        for rate in sorted(rates):
            before = spent(contestant)
            result = load(msgspec.structs.replace(spec, rate=rate), contestant.label)
            time.sleep(AFTER_SECONDS)
            yield rate, result, figures(result, spent(contestant) - before, idle)
    finally:
        contestant.stop()


def spent(contestant: Contestant) -> Spent:
    return Spent(time.monotonic(), contestant.cpu_seconds(), contestant.redis_seconds())


def load(spec: Spec, label: str) -> Result:
    """Run the load in a process of its own. Raises BenchmarkFailed when more than a tenth of the streams failed."""
    done = subprocess.run(
        [sys.executable, "-m", "headrace_dev.bench.load"],
        input=msgspec.json.encode(spec),
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(settings.ROOT / "platform"), str(settings.ROOT)])},
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise BenchmarkFailed(f"the load on {label} failed: {done.stderr.decode()[-2000:]}")
    try:
        result = msgspec.json.decode(done.stdout, type=Result)
    except msgspec.DecodeError as error:
        said = f"{error}; {len(done.stdout)} bytes, then {done.stderr.decode()[-2000:]!r}"
        raise BenchmarkFailed(f"the load on {label} said nothing sensible: {said}") from error
    total = len(result.failed) + len(result.ttft)
    if not total:
        raise BenchmarkFailed(f"{label}: no client arrived; give more seconds or a higher rate")
    if len(result.failed) > total / 10:
        raise BenchmarkFailed(f"{label}: {len(result.failed)} of {total} streams failed; first: {result.failed[0]}")
    return result
