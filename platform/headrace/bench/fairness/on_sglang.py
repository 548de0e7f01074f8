"""The same two situations on the real SGLang, small enough for a CPU: through a whole Headrace, in real seconds.

The room of its one replica is made small (ROOM tokens), so that requests wait at the gateway as they would for a large
one; what batch leaves open of it holds a dozen of the people's requests. All requests are of one size, and answers are
short: on a CPU a long prompt costs more than its tokens, and an output token as much as eight of input, so that of
others virtual tokens would not be the engine's time. SGLang mixes decoding with the prompts it reads
(--enable-mixed-chunk): without it nobody decodes while there is a prompt to read, and people's requests would hold
their room until a whole room of batch is read. People ask for a part of what the engine was seen to do.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from django.conf import settings

from headrace.bench.benchmark import BenchmarkFailed, Say
from headrace.bench.contestants import Server
from headrace.bench.document import document
from headrace.bench.fairness.clients import Clients
from headrace.bench.figures import percentile
from headrace.bench.installation import Installation
from headrace.bench.real_engine import real_engine
from headrace.bench.traces.shape import Size
from headrace.stack.parts.collector import Collector
from headrace.stack.parts.web import Web
from headrace.stack.process import Process
from routing.fairness.order import cost

MODEL = "smollm2"
# Of an engine started here. It runs all that the gateway lets in: none has to be put back for another.
FLAGS = (
    "--max-total-tokens=16384", "--max-running-requests=128", "--chunked-prefill-size=128", "--enable-mixed-chunk",
)  # fmt: skip
ROOM = 13_300  # tokens: of batch eighty requests and the open door
PEOPLE_PART = 0.5  # of the engine's time
WORDS, OUTPUT = Size(100, 0.3, 50, 150), 5
FLOOD, LESSER, GREATER = 160, 80, 800  # asked at any time: by the batch tenant, and by the twins
QUEUE = 4000  # waiting at most; a tenant's part of it takes the greater twin
SECONDS, TWIN_SECONDS, OPEN_SECONDS, WARMUP = 80.0, 60.0, 40.0, 10.0
PEOPLE, BATCH, TWINS = "tenant-0", "tenant-1", ("tenant-2", "tenant-3")


def measured(repeat: int, say: Say) -> dict[str, Any]:
    """The row of the report: each figure the median of `repeat` runs. Raises BenchmarkFailed, StackError."""
    with real_engine(say, *FLAGS) as engine, headrace(engine, say) as (url, keys):
        runs = [asyncio.run(one_run(url, engine, keys, seed, say)) for seed in range(1, repeat + 1)]
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


async def one_run(url: str, engine: str, keys: dict[str, str], seed: int, say: Say) -> dict[str, float]:
    """People alone and beside a flood of batch, before and after which the flood has every door open; and the twins.

    A machine's speed drifts within minutes: what the engine does is the mean of before and after.
    """

    def people(clients: Clients) -> None:
        clients.people(PEOPLE, keys[PEOPLE], rate=rate, words=WORDS, output=OUTPUT)

    def heap(clients: Clients, tenant: str, at_once: int, priority: str) -> None:
        clients.heap(tenant, keys[tenant], at_once=at_once, words=WORDS, output=OUTPUT, priority=priority)

    def both(clients: Clients) -> None:
        people(clients)
        heap(clients, BATCH, FLOOD, "batch")

    def twins(clients: Clients) -> None:
        for tenant, at_once in zip(TWINS, (LESSER, GREATER), strict=True):
            heap(clients, tenant, at_once, "standard")

    async def during(seconds: float, begin: Callable[[Clients], None]) -> Situation:
        return await situation(url, engine, seed, seconds, begin)

    def opened(clients: Clients) -> None:
        heap(clients, BATCH, FLOOD, "interactive")

    before = await during(OPEN_SECONDS, opened)
    rate = PEOPLE_PART * before.served(BATCH)[0] / cost(round(before.mean_prompt), OUTPUT)
    alone, beside = await during(SECONDS, people), await during(SECONDS, both)
    most = mean(one.served(BATCH)[0] for one in (before, await during(OPEN_SECONDS, opened)))
    one, other = (await during(TWIN_SECONDS, twins)).served(*TWINS)
    found = {"ttft_p99_alone": alone.ttft_p99, "ttft_p99_beside": beside.ttft_p99}
    found["ttft_moved"] = beside.ttft_p99 / alone.ttft_p99 - 1
    by_people, by_batch = beside.served(PEOPLE, BATCH)
    found["batch_share"] = by_batch / (most - by_people)
    found["twins_apart"] = abs(one - other) / mean((one, other))
    say(f"run {seed}: " + ", ".join(f"{name} {value:.3g}" for name, value in found.items()))
    return found


class Situation:
    """What was asked between two moments, after the warm-up."""

    def __init__(self, clients: Clients, begin: float, end: float) -> None:
        self._asked, self._begin, self._end = clients.asked, begin, end

    @property
    def ttft_p99(self) -> float:
        """Of the people's requests; one without a token yet counts as it has waited."""
        asked = [one for one in self._asked if one.tenant == PEOPLE and one.at >= self._begin]
        return percentile([(one.tokens[0] if one.tokens else self._end) - one.at for one in asked], 99)

    @property
    def mean_prompt(self) -> float:
        """Tokens, of those that the engine has told."""
        known = [one.prompt for one in self._asked if one.prompt]
        return mean(known) if known else 0.0

    def served(self, *tenants: str) -> list[float]:
        """Virtual tokens a second of each."""
        prompt, seconds = self.mean_prompt, self._end - self._begin
        done = {tenant: 0.0 for tenant in tenants}
        for one in self._asked:
            if one.tenant in done:
                read, written = one.processed(prompt, self._begin, self._end)
                done[one.tenant] += cost(round(read), round(written)) / seconds
        return list(done.values())


async def situation(url: str, engine: str, seed: int, seconds: float, begin: Callable[[Clients], None]) -> Situation:
    """Raises BenchmarkFailed where a request failed."""
    clients = Clients(url, MODEL, seed)
    began = time.monotonic()
    try:
        begin(clients)
        await asyncio.sleep(seconds)
        ended = time.monotonic()
    finally:
        await clients.stop()
    if len(clients.failed) > len(clients.asked) / 50:
        raise BenchmarkFailed(f"{len(clients.failed)} of {len(clients.asked)} failed: {clients.failed[0]}")
    await idle(engine)
    return Situation(clients, began + WARMUP, ended)


async def idle(engine: str) -> None:
    """Wait until it runs nothing any more: what one situation left behind is no part of the next."""
    async with httpx.AsyncClient(base_url=engine, timeout=10, trust_env=False) as client:
        for _ in range(100):
            ranks = (await client.get("/v1/loads?include=core")).json()["loads"]
            if not any(rank["num_running_reqs"] + rank["num_waiting_reqs"] for rank in ranks):
                return
            await asyncio.sleep(0.2)
    raise BenchmarkFailed("SGLang does not become idle")
