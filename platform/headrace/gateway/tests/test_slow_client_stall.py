"""A client that stops reading: the upstream is not read on for it, it ends after a while, and others notice nothing."""

import asyncio
import time
from typing import Any

import pytest
import redis

from headrace_dev.testing.clients import Caller, streams
from headrace_dev.testing.invariants import eventually, memory, peers, settled
from headrace_dev.testing.upstream import ScriptedUpstream, prompt
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World

pytestmark = pytest.mark.alone  # it measures time

WINDOW = 8192
EVENT = 20_000  # bytes
ENDLESS = prompt(tokens=10**7, interval_ms=1, text=["x" * EVENT])  # 20 MB a second, if anybody took them


async def stalled(web: WebProcess, world: World, **fields: Any) -> Caller:
    """A client that reads three events of an endless stream, and then no more."""
    caller = await Caller.to(web.url, window=WINDOW)
    await caller.ask(world, stream=True, max_tokens=90_000, **fields)
    for _ in range(3):
        await caller.event()
    caller.stop_reading()
    return caller


def port_of(caller: Caller) -> int:
    return int(caller.writer.get_extra_info("sockname")[1])


async def test_it_stops_reading_the_upstream_and_gives_up_in_the_end(
    quick_web: WebProcess, world: World, upstream: ScriptedUpstream, valkey: "redis.Redis"
) -> None:
    world.wait_known(quick_web)
    resident = memory(quick_web)
    callers = await asyncio.gather(*(stalled(quick_web, world, content=ENDLESS) for _ in range(5)))
    has_stopped = False
    while not has_stopped and upstream.stats()["open"] == 5:
        sent = [seen["tokens_sent"] for seen in upstream.requests()]
        await asyncio.sleep(0.1)
        has_stopped = sent == [seen["tokens_sent"] for seen in upstream.requests()]
    assert has_stopped, "it was read until they were given up"
    assert memory(quick_web) < resident + 30 * 2**20
    began = time.monotonic()
    running = await streams(quick_web.url, world, 3, content=prompt(tokens=30, interval_ms=20))
    assert {await stream.ended() for stream in running} == {"DONE"}
    assert time.monotonic() - began < 5, "others are delayed"

    upstream.wait_until_idle(6)
    records = settled(valkey, world, 8)
    cancelled = [record for record in records if record["status"] == "cancelled"]
    assert len(cancelled) == 5
    # No token has as many bytes as an event of this upstream: its count of one for each is not believed.
    assert all(record["output_tokens"] >= 3 and record["usage_source"] == "estimated" for record in cancelled)
    # What was taken for them fits into buffers, of about a MiB.
    assert max(record["output_tokens"] for record in cancelled) * EVENT < 4 * 2**20
    ports = {port_of(caller) for caller in callers}  # others of this process keep their connections
    for caller in callers:  # all that is left for it to read is the end
        caller.writer.transport.resume_reading()  # type: ignore[attr-defined]
        async with asyncio.timeout(5):
            await caller.wait_closed()
        await caller.leave()
    eventually(lambda: not ports & peers(quick_web))


async def test_it_drops_one_that_does_not_take_its_whole_answer(
    quick_web: WebProcess, world: World, valkey: "redis.Redis"
) -> None:
    """The request ends well; its connection does not stay for the rest."""
    world.wait_known(quick_web)
    callers = [await Caller.to(quick_web.url, window=WINDOW) for _ in range(5)]
    for caller in callers:
        caller.stop_reading()
        await caller.ask(world, content=prompt(tokens=1, big_event=4_000_000))
    assert {record["status"] for record in settled(valkey, world, 5)} == {"ok"}
    ports = {port_of(caller) for caller in callers}
    eventually(lambda: not ports & peers(quick_web), 15)
    for caller in callers:
        await caller.leave()


async def test_it_does_not_cut_one_that_reads_slowly(
    quick_web: WebProcess, world: World, upstream: ScriptedUpstream, valkey: "redis.Redis"
) -> None:
    """Longer than the patience for one that does not read at all, at a rate that keeps the gateway waiting."""
    world.wait_known(quick_web)
    caller = await stalled(quick_web, world, content=ENDLESS)
    for _ in range(40):
        caller.writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert await caller.reader.read(64 * 1024)
        caller.stop_reading()
        await asyncio.sleep(0.15)
    assert upstream.stats()["open"] == 1
    await caller.leave()
    assert settled(valkey, world, 1)[0]["status"] == "cancelled"
