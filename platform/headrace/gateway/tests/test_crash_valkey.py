"""Redis dies, loses everything, or freezes, under running streams: they finish, and each is on record once."""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from billing.settlement import reap_expired
from headrace_dev.testing.clients import Caller, Stream, streams
from headrace_dev.testing.invariants import eventually, settled, warnings
from headrace_dev.testing.stores import Services
from headrace_dev.testing.upstream import ScriptedUpstream, prompt
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World

SCRIPT = prompt(tokens=80, interval_ms=30)  # 2.4 s


@pytest.fixture
def limited(world: World, quick_webs: dict[str, WebProcess]) -> World:
    world.key, world.secret = world.add_key(
        concurrency=60, requests_per_minute=10_000, input_tokens_per_minute=10**6, output_tokens_per_minute=10**6
    )
    return world.wait_known(*quick_webs.values())


@pytest.fixture
def frozen_valkey(services: Services) -> Iterator[int]:
    """Its pid, to be frozen; thawed in any case."""
    yield services.valkey.pid
    os.kill(services.valkey.pid, signal.SIGCONT)


async def over(webs: dict[str, WebProcess], world: World, each: int) -> list[Stream]:
    opened = await asyncio.gather(*(streams(web.url, world, each, content=SCRIPT) for web in webs.values()))
    return [stream for some in opened for stream in some]


async def ends(running: list[Stream]) -> Counter[str]:
    return Counter([await stream.ended() for stream in running])


async def test_it_loses_nothing_to_a_kill(
    quick_webs: dict[str, WebProcess], limited: World, services: Services, valkey: "redis.Redis"
) -> None:
    running = await over(quick_webs, limited, 10)
    ending = await streams(quick_webs["uvicorn"].url, limited, 5, content=prompt(tokens=15, interval_ms=30))
    services.valkey.kill()
    assert await ends(ending) == {"DONE": 5}  # while it is away; they wait in the spool
    services.valkey.start()
    services.valkey.wait_ready()
    for _ in range(5):
        assert reap_expired(valkey, lease_seconds=1.5) == 0  # nobody could renew: one lease to do so
        await asyncio.sleep(0.1)
    assert await ends(running) == {"DONE": 20}
    reap_expired(valkey, lease_seconds=1.5)
    records = settled(valkey, limited, 25)
    assert {record["status"] for record in records} == {"ok"}
    assert Counter(record["output_tokens"] for record in records) == {80: 20, 15: 5}
    assert valkey.keys("hr:m:*:concurrency") == []


async def test_it_records_each_stream_whole_after_losing_all(
    quick_webs: dict[str, WebProcess], limited: World, valkey: "redis.Redis"
) -> None:
    running = await over(quick_webs, limited, 10)
    valkey.flushall()
    valkey.script_flush()
    await asyncio.sleep(0.6)  # leases are renewed, for holds that are no more
    fresh = await streams(quick_webs["daphne"].url, limited, 1, content=prompt(tokens=3))
    assert await ends(running + fresh) == {"DONE": 21}
    records = settled(valkey, limited, 21)
    assert Counter(record["output_tokens"] for record in records) == {80: 20, 3: 1}
    assert valkey.keys("hr:m:*:concurrency") == []


async def test_it_refuses_within_a_second_while_redis_is_frozen_and_recovers(
    quick_web: WebProcess,
    limited: World,
    upstream: ScriptedUpstream,
    valkey: "redis.Redis",
    frozen_valkey: int,
) -> None:
    running = await streams(quick_web.url, limited, 10, content=SCRIPT)
    logged = len(warnings(quick_web))
    os.kill(frozen_valkey, signal.SIGSTOP)
    answers = await asyncio.gather(*(refused(quick_web, limited) for _ in range(60)))
    assert {code for code, _ in answers} == {"redis_unavailable"}
    took = sorted(seconds for _, seconds in answers)
    assert took[len(took) // 2] < 1.5, took
    assert took[-1] < 3, took
    assert await ends(running) == {"DONE": 10}
    assert len(warnings(quick_web)) - logged < 10, "a line for the outage, not for each request"
    os.kill(frozen_valkey, signal.SIGCONT)
    thawed_at = time.monotonic()
    [good] = await streams(quick_web.url, limited, 1, content=prompt(tokens=1))
    assert await good.ended() == "DONE"
    assert time.monotonic() - thawed_at < 5
    # What Redis took, late, for the refused ones comes back without a reaper.
    settled(valkey, limited, 11, seconds=5)
    assert valkey.keys("hr:m:*:concurrency") == []


async def test_it_gives_running_streams_a_lease_after_a_long_freeze(
    quick_web: WebProcess, limited: World, valkey: "redis.Redis", frozen_valkey: int
) -> None:
    lease = 2.5  # longer than the web process's: its calls to a frozen Redis end by a timeout that is not so short
    reap_expired(valkey, lease_seconds=lease)  # the reaper is at work before
    running = await streams(quick_web.url, limited, 5, content=prompt(tokens=350, interval_ms=20))
    os.kill(frozen_valkey, signal.SIGSTOP)
    await asyncio.sleep(lease + 0.5)
    os.kill(frozen_valkey, signal.SIGCONT)
    for _ in range(30):
        assert reap_expired(valkey, lease_seconds=lease) == 0
        await asyncio.sleep(0.1)
    assert await ends(running) == {"DONE": 5}
    eventually(lambda: not valkey.zcard("hr:holds"))
    assert {record["status"] for record in settled(valkey, limited, 5)} == {"ok"}


async def refused(web: WebProcess, world: World) -> tuple[str, float]:
    """The code of a refusal that says when to come again, and how long it took."""
    caller = await Caller.to(web.url)
    began = time.monotonic()
    await caller.ask(world, stream=True)
    answer = await caller.head()
    took = time.monotonic() - began
    assert answer.status == 503
    assert int(answer.headers["retry-after"]) >= 1
    code = await caller.error()
    await caller.leave()
    return code, took


@pytest.mark.parametrize("fault", ["full", "read-only"])
async def test_it_refuses_and_settles_later_while_redis_takes_no_writes(
    quick_webs: dict[str, WebProcess], limited: World, valkey: "redis.Redis", fault: str
) -> None:
    """At its maxmemory, or made a replica by a failover: it answers, but nothing new may be written."""
    faults: dict[str, tuple[list[str], list[str]]] = {
        "full": (["CONFIG", "SET", "maxmemory", "1mb"], ["CONFIG", "SET", "maxmemory", "0"]),
        "read-only": (["REPLICAOF", "127.0.0.1", "1"], ["REPLICAOF", "NO", "ONE"]),
    }
    begin, end = faults[fault]
    tell: Any = valkey.execute_command
    running = await over(quick_webs, limited, 5)
    tell(*begin)
    try:
        for web in quick_webs.values():
            caller = await (await Caller.to(web.url)).ask(limited, content=prompt(tokens=2))
            answer = await caller.head()
            assert (answer.status, answer.headers["retry-after"]) == (503, "1")
            assert await caller.error() == "redis_unavailable"
            await caller.leave()
        assert await ends(running) == {"DONE": 10}
    finally:
        tell(*end)
    records = settled(valkey, limited, 10)
    assert Counter((record["status"], record["output_tokens"]) for record in records) == {("ok", 80): 10}
    assert valkey.keys("hr:m:*:concurrency") == []
