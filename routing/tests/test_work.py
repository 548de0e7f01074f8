"""What requests have replicas do: told to the other processes, and forgotten with a process that is gone."""

from collections.abc import AsyncIterator

import pytest
import redis.asyncio
from django.conf import settings

from routing import work
from routing.work import KEY, Work, WorkInHand


@pytest.fixture
async def client() -> AsyncIterator["redis.asyncio.Redis"]:
    client = redis.asyncio.Redis.from_url(settings.REDIS_URL)
    await client.delete(KEY)
    yield client
    await client.delete(KEY)
    await client.aclose()


async def test_it_knows_the_work_of_all_processes(client: "redis.asyncio.Redis") -> None:
    one, other, looking = WorkInHand(), WorkInHand(), WorkInHand()
    one.enter("a", Work(300))
    one.enter("b", Work(10))
    other.enter("a", Work(50))
    assert (one.of("a").found, one.of("b").found, other.of("a").found) == (300, 10, 50)
    for _ in range(2):  # what is read twice is counted once
        await one.refresh(client)
        await other.refresh(client)
    await one.refresh(client)
    await looking.read(client)
    assert [one.of(name).found for name in "abc"] == [350, 10, 0]
    assert [other.of(name).found for name in "abc"] == [350, 10, 0]
    assert [looking.of(name).found for name in "abc"] == [350, 10, 0]
    one.leave("a", Work(300))
    assert one.of("a").found == 50
    await one.refresh(client)
    await other.refresh(client)
    assert other.of("a").found == 50
    assert len(await client.hgetall(KEY)) == 2


async def test_it_forgets_a_process_that_is_gone(
    client: "redis.asyncio.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, living = WorkInHand(), WorkInHand()
    gone.enter("a", Work(300))
    await gone.refresh(client)
    await living.refresh(client)
    assert living.of("a").found == 300
    monkeypatch.setattr(work, "STALE_SECONDS", -1.0)
    await living.refresh(client)
    assert living.of("a").found == 0
    assert gone._origin not in await client.hgetall(KEY)
    await gone.refresh(client)
    monkeypatch.undo()
    await living.refresh(client)
    assert living.of("a").found == 300  # it only slept


async def test_it_leaves_alone_what_it_does_not_understand(client: "redis.asyncio.Redis") -> None:
    await client.hset(KEY, b"of another version", b"\x93\x01\x02\x03")
    one = WorkInHand()
    await one.refresh(client)
    assert one.of("a").found == 0


async def test_it_keeps_what_it_knows_while_redis_is_away() -> None:
    away = redis.asyncio.Redis.from_url("redis://127.0.0.1:1/0")
    one = WorkInHand()
    one.enter("a", Work(100))
    with pytest.raises(redis.RedisError):
        await one.refresh(away)
    assert one.of("a").found == 100
    one.leave("a", Work(100))
    assert one.of("a") == Work()
    await away.aclose()


def test_it_counts_prompts_until_they_are_read() -> None:
    one = WorkInHand()
    one.enter("a", Work(300, 50))
    one.enter("a", Work(0, 20))
    one.leave("a", Work(unread=50))
    assert (one.of("a"), one.of("b")) == (Work(300, 20), Work())
