"""What running requests found in caches: told to the other processes, and forgotten with a process that is gone."""

from collections.abc import AsyncIterator

import pytest
import redis.asyncio
from django.conf import settings

from routing import found
from routing.found import KEY, FoundTokens


@pytest.fixture
async def client() -> AsyncIterator["redis.asyncio.Redis"]:
    client = redis.asyncio.Redis.from_url(settings.REDIS_URL)
    await client.delete(KEY)
    yield client
    await client.delete(KEY)
    await client.aclose()


async def test_it_knows_what_the_requests_of_all_processes_found(client: "redis.asyncio.Redis") -> None:
    one, other, looking = FoundTokens(), FoundTokens(), FoundTokens()
    one.enter("a", 300)
    one.enter("b", 10)
    other.enter("a", 50)
    assert (one.tokens("a"), one.tokens("b"), other.tokens("a")) == (300, 10, 50)
    for _ in range(2):  # what is read twice is counted once
        await one.refresh(client)
        await other.refresh(client)
    await one.refresh(client)
    await looking.read(client)
    assert [one.tokens(name) for name in "abc"] == [350, 10, 0]
    assert [other.tokens(name) for name in "abc"] == [350, 10, 0]
    assert [looking.tokens(name) for name in "abc"] == [350, 10, 0]
    one.leave("a", 300)
    assert one.tokens("a") == 50
    await one.refresh(client)
    await other.refresh(client)
    assert other.tokens("a") == 50
    assert len(await client.hgetall(KEY)) == 2


async def test_it_forgets_a_process_that_is_gone(
    client: "redis.asyncio.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, living = FoundTokens(), FoundTokens()
    gone.enter("a", 300)
    await gone.refresh(client)
    await living.refresh(client)
    assert living.tokens("a") == 300
    monkeypatch.setattr(found, "STALE_SECONDS", -1.0)
    await living.refresh(client)
    assert living.tokens("a") == 0
    assert len(await client.hgetall(KEY)) == 1
    await gone.refresh(client)
    monkeypatch.undo()
    await living.refresh(client)
    assert living.tokens("a") == 300  # it only slept


async def test_it_leaves_alone_what_it_does_not_understand(client: "redis.asyncio.Redis") -> None:
    await client.hset(KEY, b"of another version", b"\x93\x01\x02\x03")
    one = FoundTokens()
    await one.refresh(client)
    assert one.tokens("a") == 0


async def test_it_keeps_what_it_knows_while_redis_is_away() -> None:
    away = redis.asyncio.Redis.from_url("redis://127.0.0.1:1/0")
    one = FoundTokens()
    one.enter("a", 100)
    with pytest.raises(redis.RedisError):
        await one.refresh(away)
    assert one.tokens("a") == 100
    one.leave("a", 100)
    one.leave("a", 100)  # once too often is no credit
    assert one.tokens("a") == 0
    await away.aclose()
