"""The same two situations on the real SGLang, small enough for a CPU: through a whole Headrace, in real seconds.

The room of its one replica is made small (ROOM tokens), so that requests wait at the gateway as they would for a large
one; what batch leaves open of it holds a dozen of the people's requests. SGLang mixes decoding with the prompts it
reads (--enable-mixed-chunk): without it nobody decodes while there is a prompt to read, and people's requests would
hold their room until a whole room of batch is read.
"""

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from django.conf import settings

from headrace.stack.parts.collector import Collector
from headrace.stack.parts.web import Web
from headrace.stack.process import Process
from headrace_dev.bench.benchmark import BenchmarkFailed, Say
from headrace_dev.bench.contestants import Server
from headrace_dev.bench.document import document
from headrace_dev.bench.fairness.rounds import one_run
from headrace_dev.bench.installation import Installation
from headrace_dev.bench.real_engine import real_engine

MODEL = "smollm2"
# Of an engine started here. It runs all that the gateway lets in: none has to be put back for another. Its steps are
# short: people wait for the one that runs, and for the prompt of batch that it has begun to read. Its cache holds all
# of a situation: where it has to evict, which it does in Python, a long situation would be slower than a short one.
FLAGS = (
    "--max-total-tokens=65536", "--max-running-requests=128", "--chunked-prefill-size=64", "--enable-mixed-chunk",
)  # fmt: skip
ROOM = 13_300  # tokens: of batch eighty requests and the open door
QUEUE = 4000  # waiting at most; a tenant's part of it takes the greater twin


def measured(repeat: int, rounds: int, say: Say) -> dict[str, Any]:
    """The row of the report: each figure the median of `repeat` runs. Raises BenchmarkFailed, StackError."""
    with real_engine(say, *FLAGS) as engine, headrace(engine, say) as (url, keys):
        runs = [asyncio.run(one_run(url, engine, MODEL, keys, seed, rounds, say)) for seed in range(1, repeat + 1)]
    return {"rule": "fair, real engine"} | {name: median(run[name] for run in runs) for name in runs[0]}


@contextmanager
def headrace(engine: str, say: Say) -> Iterator[tuple[str, dict[str, str]]]:
    """The address of a Headrace before `engine`, and a key of each tenant. Raises BenchmarkFailed."""
    said, keys = document(4, upstream=engine, model=MODEL)
    for tenant in said["tenants"]:
        tenant["keys"][0]["priority"] = "interactive"
    said["pools"][0]["orders_by_priority"] = "SGLANG_URL" not in os.environ  # `make sglang` starts it so
    route = said["models"][0]["route"]
    route["queue"] = {"timeout": 600, "length": QUEUE}
    route["timeouts"] = {"first_byte": 500, "total": 600}  # batch that people pass waits in the engine
    installation = Installation(said)
    say("setting up Headrace")
    with TemporaryDirectory(prefix="headrace-bench-") as folder:
        environment = installation.environment | {
            "HEADRACE_ROOM_FACTOR": f"{max(0.1, ROOM / capacity(engine)):.3f}",
            "HEADRACE_REDIS_TIMEOUT": "5",  # the engine leaves the others of a CPU little
        }
        collector = Process(Collector(settings.ROOT, environment), Path(folder))
        web = Server("headrace", lambda port: Web(port, "uvicorn", environment, drain_seconds=5), Path(folder))
        try:
            installation.start()
            collector.start()
            port = web.start()
            time.sleep(3)  # until the collector has told the size of the replica
            yield f"http://127.0.0.1:{port}", {f"tenant-{number}": key for number, key in enumerate(keys)}
        finally:
            web.stop()
            collector.stop()
            installation.stop()


def capacity(engine: str) -> int:
    """The tokens its KV cache takes. Raises BenchmarkFailed."""
    try:
        loads = httpx.get(f"{engine}/v1/loads?include=core", timeout=10, trust_env=False).raise_for_status().json()
        return int(loads["loads"][0]["max_total_num_tokens"])
    except (httpx.HTTPError, KeyError, IndexError, ValueError) as error:
        raise BenchmarkFailed(f"SGLang at {engine} does not tell its size: {error}") from error
