"""A client that leaves stops the real engine, and is billed for what it got."""

import asyncio
import random
from collections import Counter

import httpx
import redis

from headrace_dev.testing.engine import Engine
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World, at_rest, drained, records

STORY = "Tell me a very long story about a mill by a river."


def test_it_stops_the_engine_within_a_second(
    engine: Engine, web: WebProcess, world: World, valkey: "redis.Redis"
) -> None:
    url = f"{web.url}/v1/chat/completions"
    body = world.body(STORY, max_tokens=1000, stream=True)
    with httpx.stream("POST", url, headers=world.headers(), json=body, timeout=60, trust_env=False) as answer:
        lines = answer.iter_lines()
        for _ in range(12):
            next(lines)
    assert engine.idle_within(2) < 1.5  # the second the design allows, and the meter's own lag
    at_rest(valkey)
    drained(valkey)
    [record] = records(world)
    assert (record.status, record.usage_source) == ("cancelled", "reported")
    assert record.input_tokens > 10
    assert 1 <= record.output_tokens < 200


def test_it_stops_an_answer_that_is_not_streamed(
    engine: Engine, web: WebProcess, world: World, valkey: "redis.Redis"
) -> None:
    url = f"{web.url}/v1/chat/completions"
    try:
        httpx.post(url, headers=world.headers(), json=world.body(STORY, max_tokens=1000), timeout=2, trust_env=False)
    except httpx.ReadTimeout:
        assert engine.idle_within(2) < 1.5
    at_rest(valkey)
    drained(valkey)
    [record] = records(world)
    assert record.status == "cancelled"
    assert record.input_tokens > 10
    if engine.kind == "sglang":  # the answer an aborted request ends with says what it took
        assert record.usage_source == "reported"
        assert record.output_tokens > 0


async def leave_at_random(web: WebProcess, world: World, chance: random.Random) -> list[int]:
    """Thirty requests, six at once, each given up at a random moment; the status of those answered before."""
    answers: list[int] = []
    gate = asyncio.Semaphore(6)

    async def one(client: httpx.AsyncClient) -> None:
        body = world.body(STORY, max_tokens=500, stream=chance.random() < 0.7)
        async with gate:
            try:
                async with asyncio.timeout(chance.uniform(0.01, 3)):
                    answer = await client.post(f"{web.url}/v1/chat/completions", headers=world.headers(), json=body)
                    answers.append(answer.status_code)
            except TimeoutError:
                return

    async with httpx.AsyncClient(timeout=120, trust_env=False) as client:
        await asyncio.gather(*(one(client) for _ in range(30)))
    return answers


def test_it_leaves_nothing_behind_after_thirty_random_aborts(
    engine: Engine, web: WebProcess, world: World, valkey: "redis.Redis"
) -> None:
    answers = asyncio.run(leave_at_random(web, world, random.Random(30)))
    engine.idle_within(5)
    at_rest(valkey)
    drained(valkey)
    written = records(world)
    assert len({record.request_id for record in written}) == len(written)
    assert 20 <= len(written) <= 30  # a client may leave before its request was admitted
    # An engine's queue may be full of requests that have not ended yet; only those are errors.
    statuses = Counter(record.status for record in written)
    assert statuses.keys() <= {"cancelled", "ok", "error"}
    assert statuses["error"] == answers.count(503)
    assert statuses["cancelled"] > 15
