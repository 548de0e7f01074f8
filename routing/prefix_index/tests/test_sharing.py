"""What one process sends, the others know within 100 ms; what is no message is passed over."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import redis.asyncio
from django.conf import settings

from routing.prefix_index import Hasher, PrefixIndex
from routing.prefix_index.sharing import CHANNEL, Sharing

CHAIN = Hasher("secret").chain(b"x" * 16_000, "acme")


async def listeners(client: "redis.asyncio.Redis") -> int:
    [(_, count)] = await client.pubsub_numsub(CHANNEL)
    return int(count)


@asynccontextmanager
async def process() -> AsyncIterator[tuple[PrefixIndex, "redis.asyncio.Redis"]]:
    """An index as a web process has it."""
    client = redis.asyncio.Redis.from_url(settings.REDIS_URL, socket_timeout=0.2)
    before = await listeners(client)
    sharing = Sharing(client)
    index = PrefixIndex(tokens=100_000, most=10_000, tell=sharing.tell)
    loops = [asyncio.create_task(sharing.send_for_ever()), asyncio.create_task(sharing.hear_for_ever(index))]
    async with asyncio.timeout(5):
        while await listeners(client) == before:  # noqa: ASYNC110 - another process's event
            await asyncio.sleep(0.01)
    try:
        yield index, client
    finally:
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        await client.aclose()


async def test_it_tells_the_others_soon() -> None:
    async with process() as (here, client), process() as (there, _):
        took = []
        for replica in "abcde":
            began = time.monotonic()
            here.sent(replica, CHAIN, 4000, int(time.time() * 1000))
            while not there.overlap(replica, CHAIN, 4000):
                assert time.monotonic() - began < 5
                await asyncio.sleep(0.002)
            took.append(time.monotonic() - began)
        assert min(took) < 0.1
        await client.publish(CHANNEL, b"of another version")
        there.sent("f", CHAIN, 4000, int(time.time() * 1000))
        began = time.monotonic()
        while not here.overlap("f", CHAIN, 4000):
            assert time.monotonic() - began < 5
            await asyncio.sleep(0.002)
        assert here.entries == there.entries


async def test_it_goes_on_after_its_connections_are_lost() -> None:
    async with process() as (here, client), process() as (there, _):
        await client.client_kill_filter(_type="pubsub")
        began = time.monotonic()
        while not there.overlap("a", CHAIN, 4000):
            assert time.monotonic() - began < 10
            here.sent("a", CHAIN, 4000, int(time.time() * 1000))
            await asyncio.sleep(0.1)
