"""Redis has no memory left: new requests hear so at once, those that run finish, and each is on record once."""

from collections import Counter
from collections.abc import Iterator

import pytest
import redis

from headrace_dev.testing.clients import Caller, streams
from headrace_dev.testing.invariants import settled
from headrace_dev.testing.upstream import prompt
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World

SCRIPT = prompt(tokens=80, interval_ms=30)  # 2.4 s


@pytest.fixture
def limited(valkey: "redis.Redis") -> Iterator["redis.Redis"]:
    """Its limit is set by the test, and put back in any case."""
    before = str(valkey.config_get("maxmemory")["maxmemory"])
    yield valkey
    valkey.config_set("maxmemory", before)


@pytest.mark.parametrize("used", [0.95, 2.0])
async def test_it_refuses_new_requests_and_settles_those_that_run(
    quick_webs: dict[str, WebProcess], world: World, limited: "redis.Redis", used: float
) -> None:
    """used: as a part of the limit. Above it Redis takes no settlement either: they wait on disk."""
    world.wait_known(*quick_webs.values())
    url, served = quick_webs["uvicorn"].url, 0

    async def status() -> tuple[int, str]:
        caller = await Caller.to(url)
        await caller.ask(world, content=prompt(tokens=1))
        head = await caller.head()
        code = "" if head.status == 200 else await caller.error()
        if head.status == 200:
            await caller.body()
        caller.writer.close()
        return head.status, code

    running = await streams(url, world, 5, content=SCRIPT)
    limited.config_set("maxmemory", int(limited.info("memory")["used_memory"] / used))
    while (said := await status()) == (200, ""):
        served += 1
    assert said == (503, "redis_unavailable")
    assert Counter([await stream.ended() for stream in running]) == {"DONE": 5}
    assert await status() == (503, "redis_unavailable")
    limited.config_set("maxmemory", 0)
    while (said := await status()) == (503, "redis_unavailable"):
        pass
    assert said == (200, "")
    records = settled(limited, world, served + 6)
    assert {record["status"] for record in records} == {"ok"}
    assert Counter(record["output_tokens"] for record in records) == {80: 5, 1: served + 1}
