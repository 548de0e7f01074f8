"""Bodies that are too large, too slow or never come: refused in time, and nothing of them stays."""

import asyncio
import json

import pytest
import redis

from headrace_dev.testing.clients import Caller, Head, head, request, streams
from headrace_dev.testing.invariants import clients, eventually, memory, settled
from headrace_dev.testing.upstream import prompt
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World

LIMIT = 8 * 2**20
PIECE = b"x" * 65536


async def pour(caller: Caller, piece: bytes, pieces: int) -> None:
    """Send on and on, as one who does not listen."""
    try:
        for _ in range(pieces):
            await caller.send(piece)
    except ConnectionError:
        return


async def refused(caller: Caller, piece: bytes, pieces: int = 1000) -> tuple[Head, str]:
    """What a client that goes on sending is told."""
    pouring = asyncio.create_task(pour(caller, piece, pieces))
    async with asyncio.timeout(20):
        answer = await caller.head()
        code = await caller.error()
        await caller.wait_closed()
    pouring.cancel()
    await asyncio.gather(pouring, return_exceptions=True)
    await caller.leave()
    return answer, code


@pytest.mark.parametrize("length", [LIMIT + 1, 2**31, None], ids=["just over", "2 GiB", "chunked without end"])
async def test_it_refuses_a_body_that_is_too_large_while_it_still_comes(
    quick_web: WebProcess, world: World, length: int | None
) -> None:
    world.wait_known(quick_web)
    resident = memory(quick_web)
    caller = await Caller.to(quick_web.url)
    await caller.send(head(world, length=length))
    piece = PIECE if length else b"%x\r\n%s\r\n" % (len(PIECE), PIECE)
    answer, code = await refused(caller, piece)
    assert (answer.status, code) == (413, "body_too_large")
    assert answer.headers["connection"] == "close"
    assert memory(quick_web) < resident + 48 * 2**20


async def test_it_takes_a_body_of_exactly_the_limit(quick_web: WebProcess, world: World) -> None:
    world.wait_known(quick_web)
    caller = await Caller.to(quick_web.url)
    await caller.send(head(world, length=LIMIT))
    for _ in range(LIMIT // len(PIECE)):
        await caller.send(PIECE)
    assert (await caller.head()).status == 400  # it is no JSON
    await caller.leave()


async def test_it_ends_requests_that_trickle_in(quick_web: WebProcess, world: World) -> None:
    """A byte now and then does not buy more time: not in the head, not in the body, not before either."""
    world.wait_known(quick_web)
    whole = request(world)

    async def trickle(first: bytes) -> int:
        caller = await Caller.to(quick_web.url)
        await caller.send(first)
        dripping = asyncio.create_task(drip(caller))
        try:
            async with asyncio.timeout(8):
                status = (await caller.head()).status
                await caller.wait_closed()
        finally:
            dripping.cancel()
            await asyncio.gather(dripping, return_exceptions=True)
            await caller.leave()
        return status

    async def drip(caller: Caller) -> None:
        while True:
            await asyncio.sleep(0.2)
            await caller.send(b"x")

    heads = [b"POST /v1/chat/completions HTTP/1.1\r\nx-slow: ", head(world, length=500), whole[:-40]]
    assert await asyncio.gather(*(trickle(first) for first in heads)) == [408, 408, 408]
    silent = await Caller.to(quick_web.url)
    async with asyncio.timeout(8):
        await silent.wait_closed()
    await silent.leave()


async def test_it_forgets_five_hundred_bodies_that_never_come_whole(
    quick_web: WebProcess, world: World, valkey: "redis.Redis"
) -> None:
    world.wait_known(quick_web)
    resident = memory(quick_web)
    start = head(world, length=200_000) + b"x" * 100_000

    async def begin(leave: bool) -> Caller:
        caller = await Caller.to(quick_web.url)
        await caller.send(start)
        if leave:
            await caller.leave()
        return caller

    callers = [caller for _ in range(10) for caller in await asyncio.gather(*(begin(n % 2 == 0) for n in range(50)))]
    [good] = await streams(quick_web.url, world, 1, content=prompt(tokens=3))
    assert await good.ended() == "DONE"
    assert memory(quick_web) < resident + 150 * 2**20
    eventually(lambda: clients(quick_web) == 0, 20)
    for caller in callers:
        await caller.leave()
    assert memory(quick_web) < resident + 64 * 2**20
    settled(valkey, world, 1)


async def test_it_bounds_what_comes_before_the_body(quick_web: WebProcess, world: World) -> None:
    resident = memory(quick_web)
    caller = await Caller.to(quick_web.url)
    await caller.send(b"POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\nx-large: ")
    pouring = asyncio.create_task(pour(caller, PIECE, 1000))
    async with asyncio.timeout(20):
        assert (await caller.head()).status == 400
        await caller.wait_closed()
    pouring.cancel()
    await asyncio.gather(pouring, return_exceptions=True)
    await caller.leave()
    assert memory(quick_web) < resident + 16 * 2**20


async def test_it_refuses_compressed_bodies(quick_web: WebProcess, world: World) -> None:
    world.wait_known(quick_web)
    caller = await Caller.to(quick_web.url)
    bomb = head(world, length=20).replace(b"\r\n\r\n", b"\r\ncontent-encoding: gzip\r\n\r\n") + b"\x1f\x8b" + b"0" * 18
    await caller.send(bomb)
    assert (await caller.head()).status == 400
    assert json.dumps(await caller.error())
    await caller.leave()
