"""A full queue: fairness before length. Whoever has most waiting makes room, and is told so."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import redis
import redis.asyncio

from tenants.meters import queueing
from tenants.meters.holds import NoRoom, NoTurn
from tenants.meters.queueing import EVICTED
from tenants.meters.tests.test_queue_of_many import ask, end, pool, waiter

Ask = Callable[..., Any]


@pytest.fixture
async def full(client: "redis.asyncio.Redis") -> None:
    """One replica, with room for one, which somebody has."""
    await ask(client, "runs", pool(1, 1))


def counts(valkey: "redis.Redis") -> Counter[str]:
    texts = [json.loads(text) for text in valkey.hvals("hr:q:p:w")]
    return Counter(f"{one['t']}/{one['r']}" for one in texts)


async def fill(client: "redis.asyncio.Redis", tenant: str, number: int, **fields: Any) -> None:
    for one in range(number):
        name = f"{tenant}-{fields.get('project', 'main')}-{fields.get('priority', '')}-{one}"
        assert await ask(client, name, pool(1, 1), waiter(tenant, **{"most": 16} | fields)) is None


async def test_four_with_a_quarter_each_do_not_keep_a_fifth_out(
    client: "redis.asyncio.Redis", valkey: "redis.Redis", full: None
) -> None:
    for tenant in "abcd":
        await fill(client, tenant, 4)
    with valkey.pubsub(ignore_subscribe_messages=True) as heard:  # type: ignore[no-untyped-call]
        heard.subscribe("web")
        heard.get_message(timeout=1)
        await fill(client, "fifth", 3)
        told = [json.loads(one["data"]) for one in iter(lambda: heard.get_message(timeout=0.2), None)]
    assert counts(valkey).total() == 16
    assert sorted(counts(valkey).values()) == [3, 3, 3, 3, 4]
    assert [word for _, word in told] == [EVICTED] * 3
    gone = [name for name, _ in told]
    assert all(name.endswith("-3") for name in gone), "the newest"
    # Whoever did not hear it learns it when it asks; its hold is its process's to settle.
    assert await queueing.tend(client, "p", dict.fromkeys(gone, b""), lists={}) == dict.fromkeys(gone, EVICTED)
    with pytest.raises(NoRoom):  # it has as many as the others by now
        await ask(client, "one-more", pool(1, 1), waiter("fifth", most=16))
    assert sorted(counts(valkey).values()) == [3, 3, 3, 3, 4]
    for name in (*gone, "runs"):
        await end(client, name)
    assert valkey.hlen("hr:q:p:w") == 15


async def test_it_is_served_as_fairly_as_the_others(
    client: "redis.asyncio.Redis", valkey: "redis.Redis", full: None
) -> None:
    for tenant in "abcd":
        await fill(client, tenant, 4)
    await fill(client, "fifth", 1)
    running, order = "runs", []
    for _ in range(5):
        before: set[Any] = set(valkey.hkeys("hr:q:p:w"))
        await end(client, running)
        (granted,) = before - set(valkey.hkeys("hr:q:p:w"))
        running = granted.decode()
        order.append(running.partition("-")[0])
    assert "fifth" in order


async def test_a_full_queue_of_single_requests_is_full(
    client: "redis.asyncio.Redis", valkey: "redis.Redis", full: None
) -> None:
    for number in range(16):
        await fill(client, f"t{number}", 1)
    with pytest.raises(NoRoom):
        await ask(client, "late", pool(1, 1), waiter("late", most=16))


async def test_weights_count_in_it(client: "redis.asyncio.Redis", valkey: "redis.Redis", full: None) -> None:
    """Who has a weight of four has a right to four times as many."""
    await fill(client, "heavy", 4, weight=4.0)
    for tenant in "abc":
        await fill(client, tenant, 4)
    await fill(client, "fifth", 1)
    assert counts(valkey)["heavy/main"] == 4


async def test_a_projects_requests_make_room_for_its_tenants_other_ones(
    client: "redis.asyncio.Redis", valkey: "redis.Redis", full: None
) -> None:
    await fill(client, "acme", 4, project="big")
    await fill(client, "acme", 2, project="small")
    assert counts(valkey) == {"acme/big": 2, "acme/small": 2}
    for project in ("big", "small"):
        with pytest.raises(NoTurn):
            await ask(client, "late", pool(1, 1), waiter("acme", project=project, most=16))


async def test_higher_classes_are_neither_kept_out_nor_made_to_leave_by_lower_ones(
    client: "redis.asyncio.Redis", valkey: "redis.Redis", full: None
) -> None:
    for tenant in "abcd":
        await fill(client, tenant, 4, priority="interactive")
    # A lower class may have a twentieth of the length, at least one: or nobody would ask for what is owed to it.
    assert await ask(client, "b1", pool(1, 1), waiter("low", priority="batch", most=16)) is None
    with pytest.raises(NoRoom):
        await ask(client, "b2", pool(1, 1), waiter("other", priority="batch", most=16))
    assert counts(valkey) == {f"{tenant}/main": 4 for tenant in "abcd"} | {"low/main": 1}
    for tenant in "efgh":
        await fill(client, tenant, 2, priority="interactive")
    assert Counter(counts(valkey).values()) == {2: 8, 1: 1}


async def test_those_of_the_version_before_wait_and_are_not_made_to_leave(
    client: "redis.asyncio.Redis", valkey: "redis.Redis", full: None
) -> None:
    """Its process would not know what it is told. Its waiters name no project and no lists."""
    for number in range(4):
        name = f"old-{number}"
        await fill(client, "acme", 1, project="main") if not number else None
        valkey.hset(f"hr:hold:{name}", mapping={"meters": "[]", "expires": 2**45, "record": "{}"})
        place = ["room", "hr:m:room:p/r0", "100", "100", "room"]
        old = {"t": "acme", "c": "interactive", "w": 1, "v": 1, "ch": "old", "p": [place], "a": 2**45, "most": 4}
        valkey.hset("hr:q:p:w", name, json.dumps(old))
        valkey.hincrby("hr:q:p:n", "interactive", 1)
        valkey.rpush("hr:q:p:l:interactive:acme", name)
    with pytest.raises(NoRoom):
        await ask(client, "new", pool(1, 1), waiter("new", most=4))
    for name in ("runs", "acme-main--0", "old-0", "old-1"):
        await end(client, name)
    assert [valkey.hexists(f"hr:hold:old-{number}", "granted") for number in range(4)] == [False, False, True, False]
