"""What clients send beside a request: more than they declared, a next request too early, wishes for other protocols."""

import asyncio

import redis

from headrace.testing.clients import Caller, request
from headrace.testing.invariants import clients, eventually, idle, settled
from headrace.testing.upstream import ScriptedUpstream, prompt
from headrace.testing.web import WebProcess
from headrace.testing.world import World

SHORT = prompt(tokens=2)


async def test_it_answers_one_request_at_a_time_and_still_sees_its_client_leave(
    quick_web: WebProcess, world: World, upstream: ScriptedUpstream, valkey: "redis.Redis"
) -> None:
    """More than the declared body, be it rubbish or a next request, is not served and does not make us deaf."""
    world.wait_known(quick_web)
    for more in (b"more than was declared", request(world), b"x" * 300_000):
        caller = await Caller.to(quick_web.url)
        await caller.send(request(world, content=prompt(tokens=3, interval_ms=50), stream=True) + more)
        assert (await caller.head()).status == 200
        assert (await caller.rest()).endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
        await caller.leave()
        leaver = await Caller.to(quick_web.url)
        await leaver.send(request(world, content=prompt(first_ms=60_000), stream=True))
        await asyncio.sleep(0.2)
        await leaver.send(more)
        await asyncio.sleep(0.1)
        assert upstream.stats()["open"] == 1
        await leaver.leave()
        idle(upstream, 1)
    records = settled(valkey, world, 6)
    assert [record["status"] for record in records] == ["ok", "cancelled"] * 3


async def test_it_serves_one_after_the_other_on_a_connection(
    quick_web: WebProcess, world: World, valkey: "redis.Redis"
) -> None:
    """An empty line after a body, as some clients send, is no request."""
    world.wait_known(quick_web)
    caller = await Caller.to(quick_web.url)
    for number in range(3):
        await caller.ask(world, content=SHORT, stream=number == 1)
        await caller.send(b"\r\n")
        assert (await caller.head()).status == 200
        await caller.body()
    await caller.leave()
    settled(valkey, world, 3)


async def test_it_answers_plainly_whoever_asks_for_another_protocol(
    quick_web: WebProcess, world: World, valkey: "redis.Redis"
) -> None:
    """Java's client asks for HTTP/2 with each first request, body and all."""
    world.wait_known(quick_web)
    for wish in (b"h2c", b"websocket"):
        caller = await Caller.to(quick_web.url)
        asking = b"\r\nconnection: Upgrade, HTTP2-Settings\r\nupgrade: " + wish + b"\r\nhttp2-settings: AAMAAABk\r\n"
        for _ in range(2):
            await caller.send(request(world, content=SHORT).replace(b"\r\n", asking, 1))
            assert (await caller.head()).status == 200
            await caller.body()
        await caller.leave()
    settled(valkey, world, 4)
    eventually(lambda: clients(quick_web) == 0)
