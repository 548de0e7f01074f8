"""A thousand clients leave at random moments, over two web processes: nothing is lost, doubled or left behind."""

import asyncio
import io
import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from django.core.management import call_command

from engines.models import Replica
from headrace.gateway.tests.busy import capacity
from headrace_dev.testing.clients import Caller
from headrace_dev.testing.invariants import descriptors, events, eventually, idle, memory, settled, sockets
from headrace_dev.testing.upstream import ScriptedUpstream, prompt
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World

pytestmark = pytest.mark.alone  # its clients leave by the clock: a busy machine admits too few

REQUESTS = 1000
AT_ONCE = 50


async def one(web: WebProcess, world: World, dice: random.Random, name: str, failing: float) -> None:
    script: dict[str, Any] = {
        "tokens": dice.choice([1, 5, 50, 1000]),
        "interval_ms": dice.choice([0, 1, 5, 20]),
        "first_ms": dice.choice([0, 0, 10, 100, 500]),
        "done": dice.random() < 0.9,
        "linger_ms": dice.choice([0, 0, 50]),
    }
    if dice.random() < failing:
        script = {"status": dice.choice([429, 500, 503])}
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


@pytest.fixture
def crowded(metered: World, valkey: "redis.Redis") -> Iterator[World]:
    """The same with two replicas, each with room for a few requests."""
    with (
        ScriptedUpstream(tokens=5, interval_ms=1) as second,
        capacity(valkey, 1500, f"{metered.name}/r1", f"{metered.name}/r2"),
    ):
        Replica.objects.create(pool_id=metered.name, name="r2", url=second.url)
        time.sleep(1)
        yield metered


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


async def test_it_leaves_nothing_in_rooms_and_queues(
    quick_webs: dict[str, WebProcess], crowded: World, valkey: "redis.Redis"
) -> None:
    """As above, where replicas are full most of the time and some requests go to the other."""
    seed = random.randrange(2**32)
    await storm(list(quick_webs.values()), crowded, random.Random(seed), REQUESTS, failing=0.3)
    eventually(lambda: not valkey.zcard("hr:holds"), 20)
    counted = Counter(event["request_id"] for event in events(valkey, crowded))
    records = settled(valkey, crowded, len(counted))
    logged = Counter(
        record["request_id"]
        for web in quick_webs.values()
        for record in web.records()
        if record["key"] == crowded.key.pk
    )
    assert logged == counted, f"seed {seed}"
    assert valkey.keys("hr:m:room:*") == []
    assert [key for key in valkey.scan_iter("hr:q:*") if not key.endswith(b":s")] == []
    assert sum(record["queue_ms"] > 0 for record in records) >= 10, "nobody waited"
    assert sum(record["fallback"] > 0 for record in records) >= 1, "nobody went elsewhere"


async def storm(
    webs: list[WebProcess], world: World, dice: random.Random, requests: int, *, failing: float = 0.0
) -> None:
    gate = asyncio.Semaphore(AT_ONCE)

    async def gated(number: int) -> None:
        async with gate:
            await one(webs[number % len(webs)], world, dice, str(number), failing)

    await asyncio.gather(*(gated(number) for number in range(requests)))
