"""What requests have replicas do: told to the other processes, and forgotten with a process that is gone."""

from collections.abc import AsyncIterator

import pytest
import redis.asyncio
from django.conf import settings

from routing import attention_load
from routing.attention_load import KEY, AttentionLoad, SharedAttentionLoad


@pytest.fixture
async def client() -> AsyncIterator["redis.asyncio.Redis"]:
    client = redis.asyncio.Redis.from_url(settings.REDIS_URL)
    await client.delete(KEY)
    yield client
    await client.delete(KEY)
    await client.aclose()


async def test_it_knows_the_work_of_all_processes(client: "redis.asyncio.Redis") -> None:
    one, other, looking = SharedAttentionLoad(), SharedAttentionLoad(), SharedAttentionLoad()
    one.enter("a", AttentionLoad(300))
    one.enter("b", AttentionLoad(10))
    other.enter("a", AttentionLoad(50))
    assert (one.of("a").cached, one.of("b").cached, other.of("a").cached) == (300, 10, 50)
    for _ in range(2):  # what is read twice is counted once
        await one.refresh(client)
        await other.refresh(client)
    await one.refresh(client)
    await looking.read(client)
    assert [one.of(name).cached for name in "abc"] == [350, 10, 0]
    assert [other.of(name).cached for name in "abc"] == [350, 10, 0]
    assert [looking.of(name).cached for name in "abc"] == [350, 10, 0]
    one.leave("a", AttentionLoad(300))
    assert one.of("a").cached == 50
    await one.refresh(client)
    await other.refresh(client)
    assert other.of("a").cached == 50
    assert len(await client.hgetall(KEY)) == 2


async def test_it_forgets_a_process_that_is_gone(
    client: "redis.asyncio.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, living = SharedAttentionLoad(), SharedAttentionLoad()
    gone.enter("a", AttentionLoad(300))
    await gone.refresh(client)
    await living.refresh(client)
    assert living.of("a").cached == 300
    monkeypatch.setattr(attention_load, "STALE_SECONDS", -1.0)
    await living.refresh(client)
    assert living.of("a").cached == 0
    assert gone._origin not in await client.hgetall(KEY)
    await gone.refresh(client)
    monkeypatch.undo()
    await living.refresh(client)
    assert living.of("a").cached == 300  # it only slept


async def test_it_leaves_alone_what_it_does_not_understand(client: "redis.asyncio.Redis") -> None:
    await client.hset(KEY, b"of another version", b"\x93\x01\x02\x03")
    one = SharedAttentionLoad()
    await one.refresh(client)
    assert one.of("a").cached == 0


async def test_it_keeps_what_it_knows_while_redis_is_away() -> None:
    away = redis.asyncio.Redis.from_url("redis://127.0.0.1:1/0")
    one = SharedAttentionLoad()
    one.enter("a", AttentionLoad(100))
    with pytest.raises(redis.RedisError):
        await one.refresh(away)
    assert one.of("a").cached == 100
    one.leave("a", AttentionLoad(100))
    assert one.of("a") == AttentionLoad()
    await away.aclose()


def test_it_counts_prompts_until_they_are_read() -> None:
    one = SharedAttentionLoad()
    one.enter("a", AttentionLoad(300, 50))
    one.enter("a", AttentionLoad(0, 20))
    one.leave("a", AttentionLoad(pending_prefill=50))
    assert (one.of("a"), one.of("b")) == (AttentionLoad(300, 20), AttentionLoad())
