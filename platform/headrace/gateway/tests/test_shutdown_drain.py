"""SIGTERM: no more work is taken, streams finish for a while, the rest is settled and told; exit status 0."""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import redis

from headrace.gateway.tests.conftest import QUICK
from headrace_dev.testing.clients import Caller, Stream, streams
from headrace_dev.testing.invariants import idle, settled
from headrace_dev.testing.upstream import ScriptedUpstream, prompt
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World

pytestmark = pytest.mark.alone  # it measures time


@pytest.fixture(params=["uvicorn", "daphne"])
def leaving(
    request: pytest.FixtureRequest, world: World, tmp_path: Path, django_db_setup: None
) -> Iterator[WebProcess]:
    web = WebProcess(tmp_path / "web.log", request.param, **QUICK)
    try:
        web.wait_ready()
        world.wait_known(web)
        yield web
    finally:
        web.kill()


async def test_it_finishes_what_it_can_and_settles_the_rest(
    leaving: WebProcess, world: World, upstream: ScriptedUpstream, valkey: "redis.Redis"
) -> None:
    short = await streams(leaving.url, world, 5, content=prompt(tokens=25, interval_ms=40))  # a second
    long = await streams(leaving.url, world, 5, content=prompt(tokens=1000, interval_ms=20))
    silent = await (await Caller.to(leaving.url)).ask(world, content=prompt(first_ms=60_000), stream=True)
    whole = await (await Caller.to(leaving.url)).ask(world, content=prompt(tokens=1000, interval_ms=20))
    arriving = await Caller.to(leaving.url)
    await arriving.send(b"POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\n")  # it has not asked for anything yet
    async with httpx.AsyncClient(base_url=leaving.url, trust_env=False, headers=world.headers()) as other:
        assert (await other.get("/readyz")).status_code == 200
        leaving.send(signal.SIGTERM)
        told_at = time.monotonic()
        await asyncio.sleep(0.3)
        ready = await other.get("/readyz")
        assert (ready.status_code, ready.json()["stopping"], ready.json()["running"]) == (503, True, 12)
        refused = await other.post("/v1/chat/completions", json=world.body())
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "no_capacity")
        assert refused.headers["retry-after"] == "1"
        leaving.send(signal.SIGTERM)  # told again, it goes on
        assert await ends(short) == {"DONE": 5}
        assert await ends(long) == {"no_capacity": 5}
    assert (await silent.head()).status == 503
    assert await silent.error() == "no_capacity"
    assert (await whole.head()).status == 503
    assert await whole.error() == "no_capacity"
    await arriving.wait_closed()
    idle(upstream, 1)
    assert await asyncio.to_thread(leaving.stop) == 0
    assert 2 <= time.monotonic() - told_at < 8
    records = settled(valkey, world, 12)
    assert Counter(record["status"] for record in records) == {"ok": 5, "error": 7}
    assert sum(record["output_tokens"] > 0 for record in records) == 11  # all but the silent one
    for caller in (silent, whole, arriving):
        await caller.leave()


async def ends(running: list[Stream]) -> Counter[str]:
    return Counter([await stream.ended() for stream in running])
