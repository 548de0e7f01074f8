"""A process that has no file descriptor left says so in the API's own words, and is well again once it has some."""

import asyncio
import resource
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from headrace.gateway.tests.conftest import QUICK
from headrace_dev.testing.clients import Caller
from headrace_dev.testing.invariants import descriptors
from headrace_dev.testing.upstream import prompt
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World, at_rest

SPARE = 25


@pytest.fixture(params=["uvicorn", "daphne"])
def fresh(request: pytest.FixtureRequest, tmp_path: Path, world: World) -> Iterator[WebProcess]:
    """One that has answered nothing yet, so that all its files are still to be opened."""
    web = WebProcess(tmp_path / "web.log", request.param, **QUICK)
    try:
        world.wait_known(web.wait_ready())
        yield web
    finally:
        web.stop()


async def told(web: WebProcess, world: World) -> str:
    """How a stream ended, or the error's code."""
    try:
        caller = await Caller.to(web.url)
    except ConnectionError:
        return "cut"
    try:
        async with asyncio.timeout(20):
            await caller.ask(world, content=prompt(tokens=20, interval_ms=20), stream=True)
            if (await caller.head()).status != 200:
                return await caller.error()
            while (event := await caller.event()) != "[DONE]":
                if event.startswith('{"error":'):
                    return "error event"
            return "DONE"
    except ConnectionError:
        return "cut"
    finally:
        await caller.leave()


async def test_it_says_so_and_recovers(fresh: WebProcess, world: World, valkey: "redis.Redis") -> None:
    limits = resource.prlimit(fresh.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(fresh.pid, resource.RLIMIT_NOFILE, (descriptors(fresh) + SPARE, limits[1]))
    ends = Counter(await asyncio.gather(*(told(fresh, world) for _ in range(2 * SPARE))))
    assert set(ends) <= {"DONE", "redis_unavailable", "upstream_error", "cut", "error event"}, ends
    assert ends["DONE"] < 2 * SPARE, "the limit was not felt"
    resource.prlimit(fresh.pid, resource.RLIMIT_NOFILE, limits)
    await asyncio.sleep(0.5)
    at_rest(valkey)
    assert await told(fresh, world) == "DONE"
    assert "Traceback" not in fresh.log.read_text()
