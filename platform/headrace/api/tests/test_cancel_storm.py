"""A thousand clients leave at random moments, over two web processes: nothing is lost, doubled or left behind."""

import asyncio
import io
import json
import random
import time
from collections import Counter
from typing import Any

import pytest
import redis
from django.core.management import call_command

from headrace.testing.clients import Caller
from headrace.testing.invariants import descriptors, events, eventually, idle, memory, settled, sockets
from headrace.testing.upstream import ScriptedUpstream, prompt
from headrace.testing.web import WebProcess
from headrace.testing.world import World

pytestmark = pytest.mark.alone  # it measures time

REQUESTS = 1000
AT_ONCE = 50


async def one(web: WebProcess, world: World, dice: random.Random, name: str) -> None:
    script = {
        "tokens": dice.choice([1, 5, 50, 1000]),
        "interval_ms": dice.choice([0, 1, 5, 20]),
        "first_ms": dice.choice([0, 0, 10, 100, 500]),
        "done": dice.random() < 0.9,
        "linger_ms": dice.choice([0, 0, 50]),
    }
    fields: dict[str, Any] = {"stream": dice.random() < 0.7, "n": dice.choice([1, 1, 1, 2]), "max_tokens": 1000}
    caller = await Caller.to(web.url)
    try:
        async with asyncio.timeout(dice.choice([0.001, 0.02, 0.1, 0.3, 1.0]) * (0.5 + dice.random())):
            await caller.ask(world, name=name, content=prompt(**script), **fields)
            await caller.rest()
    except TimeoutError:
        await caller.leave(reset=dice.random() < 0.5)
    except ConnectionError:
        pass
    finally:
        await caller.leave()


@pytest.fixture
def metered(world: World, quick_webs: dict[str, WebProcess]) -> World:
    """The world with a key that has every limit, none of which is reached."""
    world.key, world.secret = world.add_key(
        concurrency=1000, requests_per_minute=10**6, input_tokens_per_minute=10**9, output_tokens_per_minute=10**9
    )
    return world.wait_known(*quick_webs.values())


async def test_it_leaves_nothing_of_a_thousand_aborts(
    quick_webs: dict[str, WebProcess],
    metered: World,
    upstream: ScriptedUpstream,
    valkey: "redis.Redis",
) -> None:
    webs, world = list(quick_webs.values()), metered
    seed = random.randrange(2**32)
    dice = random.Random(seed)
    await storm(webs, world, dice, 100)  # connections are made, code is warm
    eventually(lambda: not valkey.zcard("hr:holds"))
    idle(upstream, 5)
    before = [(descriptors(web), memory(web)) for web in webs]
    admitted_before = len(events(valkey, world))

    began = time.monotonic()
    await storm(webs, world, dice, REQUESTS)
    took = time.monotonic() - began

    idle(upstream, 5)
    eventually(lambda: not valkey.zcard("hr:holds"))
    counted = Counter(event["request_id"] for event in events(valkey, world))
    records = settled(valkey, world, len(counted))
    admitted = len(counted) - admitted_before
    assert admitted > REQUESTS / 2, f"seed {seed}"
    logged = Counter(record["request_id"] for web in webs for record in web.records() if record["key"] == world.key.pk)
    assert logged == counted, f"seed {seed}: each admitted request has one record, and each record its request"
    seen = {entry["rid"] for entry in upstream.requests()}
    assert seen <= {record["upstream_id"] for record in records} | {None}, f"seed {seed}"
    listed = io.StringIO()
    await asyncio.to_thread(call_command, "holds", format="json", stdout=listed)
    assert json.loads(listed.getvalue()) == []
    # Idle connections to the upstream are given up after 4 s, those to Redis are kept.
    # What is left: its listener, its connection to the database, perhaps one of a reader of its metrics.
    eventually(lambda: all(sockets(web) <= 3 for web in webs))
    for web, (files, resident) in zip(webs, before, strict=True):
        assert descriptors(web) < files + 64, web.log  # at most the whole pool of connections to Redis
        assert memory(web) < resident + 32 * 2**20, web.log
    print(f"{REQUESTS} in {took:.1f} s, {admitted} admitted, {Counter(record['status'] for record in records)}")


async def storm(webs: list[WebProcess], world: World, dice: random.Random, requests: int) -> None:
    gate = asyncio.Semaphore(AT_ONCE)

    async def gated(number: int) -> None:
        async with gate:
            await one(webs[number % len(webs)], world, dice, str(number))

    await asyncio.gather(*(gated(number) for number in range(requests)))
