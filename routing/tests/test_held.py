"""What replicas hold: what Redis said last and what changed here since, never negative, nothing lost in an outage."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import redis.asyncio
from django.conf import settings
from hypothesis import given
from hypothesis import strategies as st

from routing.held_tokens import HeldTokens


@pytest.fixture
async def client() -> AsyncIterator["redis.asyncio.Redis"]:
    client = redis.asyncio.Redis.from_url(settings.REDIS_URL)
    yield client
    await client.aclose()


async def test_it_knows_what_all_processes_hold(client: "redis.asyncio.Redis") -> None:
    held = HeldTokens("room:{}".format)
    held.enter("a", 100)
    assert held.tokens("a") == 100
    await client.mset({"room:a": 350, "room:b": 20})
    await held.refresh(client, ["a", "b", "c"])
    assert [held.tokens(name) for name in "abc"] == [350, 20, 0]
    held.enter("c", 7)
    held.leave("a", 100)
    assert [held.tokens(name) for name in "abc"] == [250, 20, 7]
    await held.refresh(client, [])
    assert held.tokens("a") == 0


async def test_it_forgets_nothing_while_redis_reads(client: "redis.asyncio.Redis") -> None:
    held = HeldTokens("room:{}".format)
    await client.set("room:a", 350)
    await held.refresh(client, ["a", "b"])
    held.enter("a", 100)
    held.enter("b", 7)
    await client.incrby("room:a", 100)
    await client.client_pause(300)
    reading = asyncio.create_task(held.refresh(client, ["a", "b"]))
    await asyncio.sleep(0.05)
    assert not reading.done()
    assert [held.tokens(name) for name in "ab"] == [450, 7]
    held.leave("b", 7)
    assert held.tokens("b") == 0
    await reading
    assert held.tokens("a") == 450


async def test_it_keeps_what_it_knows_while_redis_is_away() -> None:
    away = redis.asyncio.Redis.from_url("redis://127.0.0.1:1/0")
    held = HeldTokens(str)
    held.enter("a", 100)
    with pytest.raises(redis.RedisError):
        await held.refresh(away, ["a"])
    assert held.tokens("a") == 100
    await away.aclose()


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("ab"), st.integers(0, 1000))))
def test_it_is_never_negative(changes: list[tuple[bool, str, int]]) -> None:
    held = HeldTokens(str)
    for is_new, name, tokens in changes:
        (held.enter if is_new else held.leave)(name, tokens)
        assert held.tokens("a") >= 0
        assert held.tokens("b") >= 0
