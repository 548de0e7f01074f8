"""Pools of many replicas: nothing idles while anybody waits, and what comes or changes reaches all who wait."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import redis
import redis.asyncio

from tenants.meters import holds, queueing
from tenants.meters.holds import NoRoom, Taken
from tenants.meters.meter import room_key, room_of
from tenants.meters.queueing import Waiter

RECORD = b'{"tenant":"acme"}'
NEED, LEASE = 100, 60_000
LIST = "hr:rooms:web:model:p"


@pytest.fixture
def heard(valkey: "redis.Redis") -> Iterator[Any]:
    """What the process that waits is told."""
    with valkey.pubsub(ignore_subscribe_messages=True) as subscription:  # type: ignore[no-untyped-call]
        subscription.subscribe("web")
        subscription.get_message(timeout=1)
        yield subscription


def waiter(tenant: str = "acme", priority: str = "interactive", **fields: Any) -> Waiter:
    own: dict[str, Any] = {"cost": 100.0, "channel": "web", "weight": 1.0, "patience": 60_000, "most": 10_000}
    own |= {"project": "main", "need": str(NEED), "lists": [("p", LIST)]}
    return Waiter(tenant=tenant, priority=priority, **own | fields)


def pool(size: int, slots: int, first: int = 0) -> list[tuple[Any, int]]:
    """The rooms of a pool's replicas, best first, as one of many requests ranks them."""
    names = [f"p/r{(number + first) % size}" for number in range(size)]
    return [(room_of(name, slots * NEED), NEED) for name in names]


async def ask(
    client: "redis.asyncio.Redis", request_id: str, rooms: list[tuple[Any, int]], who: Waiter | None = None
) -> str | None:
    """The replica that it went to; None: it waits."""
    taken = Taken([], {}, rooms=rooms)
    await holds.admit(client, request_id=request_id, lease_ms=LEASE, taken=taken, record=RECORD, waiter=who or waiter())
    return None if taken.room is None else rooms[taken.room][0].scope


async def end(client: "redis.asyncio.Redis", request_id: str) -> None:
    await holds.settle(client, request_id=request_id, used={}, event=b"{}")


def working(valkey: "redis.Redis", size: int) -> int:
    """Slots that are taken."""
    return sum(int(valkey.get(room_key(f"p/r{number}")) or 0) for number in range(size)) // NEED


@pytest.mark.parametrize(("size", "slots", "priority"), [
    (17, 8, "interactive"), (64, 8, "interactive"), (100, 4, "interactive"),
    (17, 8, "standard"), (64, 8, "standard"), (100, 4, "batch"),
])  # fmt: skip
async def test_no_slot_idles_while_anybody_waits(
    client: "redis.asyncio.Redis", valkey: "redis.Redis", size: int, slots: int, priority: str
) -> None:
    """But the part of the pool that is left to higher classes."""
    open_door = {"interactive": 0.0, "standard": 0.05, "batch": 0.15}[priority]
    busy = int(size * slots * (1 - open_door))
    number = busy + 200
    rooms = json.dumps([[room_key(f"p/r{one}"), str(slots * NEED)] for one in range(size)]).encode()
    for one in range(number):
        await ask(client, f"r{one}", pool(size, slots, one * 7), waiter(priority=priority))
    assert working(valkey, size) == busy
    # Their order of ending is that of their names, whatever replica they are on: room comes free anywhere.
    for one in range(100):
        await queueing.tend(client, "p", {}, lists={LIST: rooms})  # as their process does each half second
        await end(client, f"r{one}")
        assert working(valkey, size) == busy
    assert valkey.hlen("hr:q:p:w") == 100
    for one in range(100, number):
        await end(client, f"r{one}")
    assert (working(valkey, size), valkey.keys("hr:hold:*")) == (0, [])


@pytest.mark.parametrize("size", [17, 64, 100])
async def test_it_goes_to_the_next_target_when_the_whole_pool_is_full(
    client: "redis.asyncio.Redis", valkey: "redis.Redis", size: int
) -> None:
    provider = (room_of("hosted", None), NEED)
    went = [await ask(client, f"r{one}", [*pool(size, 1, one), provider]) for one in range(size + 5)]
    assert Counter(went) == {f"p/r{number}": 1 for number in range(size)} | {"hosted": 5}


async def test_a_replica_that_comes_reaches_all_who_wait(
    client: "redis.asyncio.Redis", valkey: "redis.Redis", heard: Any
) -> None:
    for one in range(70):
        await ask(client, f"r{one}", pool(20, 1, one))
    assert valkey.hlen("hr:q:p:w") == 50
    rooms = [[room_key(f"p/r{number}"), str(NEED)] for number in range(20)]
    new = [[room_key(f"p/new{number}"), str(4 * NEED)] for number in range(5)]
    for _ in range(2):  # more than one call of it gives
        await queueing.tend(client, "p", {}, lists={LIST: json.dumps(rooms + new).encode()})
    assert [int(valkey.get(key) or 0) for key, _ in new] == [4 * NEED] * 5
    assert valkey.hlen("hr:q:p:w") == 30
    # One that grew, too; and none that drains.
    grown = [[key, str(2 * NEED)] for key, _ in rooms[:10]] + rooms[10:]
    await queueing.tend(client, "p", {}, lists={LIST: json.dumps(grown).encode()})
    assert valkey.hlen("hr:q:p:w") == 20
    await queueing.tend(client, "p", {}, lists={LIST: json.dumps(rooms[10:]).encode()})
    for one in range(20):
        await end(client, f"r{one}")
    assert {int(valkey.get(key) or 0) for key, _ in rooms[10:]} == {NEED}
    assert valkey.hlen("hr:q:p:w") == 10  # those on the replicas that drain made no room


async def test_more_than_one_call_gives_is_given_by_the_next(
    client: "redis.asyncio.Redis", valkey: "redis.Redis", heard: Any
) -> None:
    for one in range(200):
        await ask(client, f"r{one}", pool(1, 1))
    rooms = [[room_key("p/new"), str(150 * NEED)]]
    await queueing.tend(client, "p", {}, lists={LIST: json.dumps(rooms).encode()})
    rounds = 0
    while any(json.loads(one["data"]) == ["", "p"] for one in iter(lambda: heard.get_message(timeout=0.2), None)):
        await queueing.tend(client, "p", {}, lists={})
        rounds += 1
    assert (int(valkey.get(rooms[0][0]) or 0), valkey.hlen("hr:q:p:w")) == (150 * NEED, 49)
    assert 5 <= rounds <= 12


async def test_room_in_another_pool_is_given_at_once_to_those_who_may_go_there(
    client: "redis.asyncio.Redis", valkey: "redis.Redis"
) -> None:
    other = [(room_of("o/r1", NEED), NEED)]
    both = [("p", LIST), ("o", "hr:rooms:web:model:o")]
    assert await ask(client, "r1", pool(1, 1)) == "p/r0"
    assert await ask(client, "r2", other, waiter(lists=both[1:])) == "o/r1"
    assert await ask(client, "r3", pool(1, 1) + other, waiter(lists=both)) is None
    await end(client, "r2")
    assert valkey.hget("hr:hold:r3", "granted") == room_key("o/r1").encode()


async def test_one_whose_attempt_failed_does_not_pass_those_who_wait_elsewhere(
    client: "redis.asyncio.Redis", valkey: "redis.Redis"
) -> None:
    large = [(room_of("o/r1", 3 * NEED), 3 * NEED)]
    await ask(client, "r1", [(room_of("o/r1", 3 * NEED), NEED)], waiter(lists=[]))
    assert await ask(client, "r2", large, waiter(lists=[])) is None
    taken = Taken([], {}, rooms=pool(1, 1))
    await holds.admit(client, request_id="r3", lease_ms=LEASE, taken=taken, record=RECORD, waiter=waiter())
    moved = Taken([], {}, rooms=[(room_of("o/r1", 3 * NEED), NEED)], room=0)
    for priority in ("standard", "interactive", ""):
        with pytest.raises(holds.Refused):
            await holds.move(
                client, request_id="r3", step=1, taken=moved, record=RECORD, progress=b"{}", priority=priority
            )
    await end(client, "r2")
    await holds.move(client, request_id="r3", step=1, taken=moved, record=RECORD, progress=b"{}", priority="batch")


@pytest.mark.parametrize("priority", ["batch", "standard", "interactive"])
async def test_who_may_not_wait_passes_nobody_of_its_class_and_above(
    client: "redis.asyncio.Redis", valkey: "redis.Redis", priority: str
) -> None:
    """As shadows, and the routes that let nobody wait: a free place is not theirs while somebody waits for a larger."""
    await ask(client, "r1", pool(1, 4))
    large = [(room_of("p/r0", 4 * NEED), 4 * NEED)]
    assert await ask(client, "r2", large, waiter(priority=priority)) is None
    for number, one in enumerate((priority, "batch")):
        with pytest.raises(NoRoom):
            await ask(client, f"s{number}", pool(1, 4), waiter(priority=one, most=0))
    with pytest.raises(NoRoom):  # of which nothing is known
        await holds.admit(client, request_id="s3", lease_ms=LEASE, taken=Taken([], {}, rooms=pool(1, 4)), record=RECORD)
    await end(client, "r1")
    assert valkey.hget("hr:hold:r2", "granted")
