"""Rooms: of several, a request takes the first that has any; it comes back however the request ends."""

import asyncio

import pytest
import redis
import redis.asyncio

from tenants.meters import holds
from tenants.meters.holds import NoRoom, Refused, Taken
from tenants.meters.meter import CONCURRENCY, REQUESTS, meters_of, room_key, room_of

RECORD = b'{"tenant":"acme"}'


def taken(*rooms: tuple[str, int | None, int], **limits: int | None) -> Taken:
    """Of each room its replica, its capacity and what the request takes of it."""
    offered = [(room_of(name, capacity), amount) for name, capacity, amount in rooms]
    return Taken(meters_of("key", "k1", limits), {REQUESTS: 1, CONCURRENCY: 1}, rooms=offered)


async def admit(client: "redis.asyncio.Redis", request_id: str, what: Taken, lease_ms: int = 10_000) -> str | None:
    """The replica whose room was taken."""
    await holds.admit(client, request_id=request_id, lease_ms=lease_ms, taken=what, record=RECORD)
    return None if what.room is None else what.rooms[what.room][0].scope


def held(valkey: "redis.Redis", replica: str) -> int:
    return int(valkey.get(room_key(replica)) or 0)


async def test_it_takes_the_first_that_has_room(client: "redis.asyncio.Redis", valkey: "redis.Redis") -> None:
    offer = (("p/a", 1000, 600), ("p/b", 1000, 300), ("p/c", None, 600))
    went = [await admit(client, f"r{number}", taken(*offer)) for number in range(6)]
    assert went == ["p/a", "p/b", "p/b", "p/b", "p/c", "p/c"]
    assert [held(valkey, name) for name in ("p/a", "p/b", "p/c")] == [600, 900, 1200]


async def test_it_takes_nothing_where_none_has_room(client: "redis.asyncio.Redis", valkey: "redis.Redis") -> None:
    await admit(client, "r1", taken(("p/a", 1000, 600)))
    with pytest.raises(NoRoom):
        await admit(client, "r2", taken(("p/a", 1000, 600), concurrency=5))
    assert valkey.get("hr:m:key:k1:concurrency") is None
    assert held(valkey, "p/a") == 600
    await holds.settle(client, request_id="r1", used={}, event=b"{}")
    assert valkey.keys("hr:m:*") == []
    assert await admit(client, "r2", taken(("p/a", 1000, 600), concurrency=5)) == "p/a"


async def test_it_lets_an_idle_replica_take_any_size(client: "redis.asyncio.Redis") -> None:
    assert await admit(client, "r1", taken(("p/a", 1000, 5000))) == "p/a"
    with pytest.raises(NoRoom):
        await admit(client, "r2", taken(("p/a", 1000, 1)))


async def test_it_says_first_what_a_limit_refuses(client: "redis.asyncio.Redis") -> None:
    await admit(client, "r1", taken(("p/a", 1000, 1000), concurrency=1))
    with pytest.raises(Refused) as refused:
        await admit(client, "r2", taken(("p/a", 1000, 1000), concurrency=1))
    assert refused.value.meter.measure == CONCURRENCY


async def test_it_says_the_same_however_often_it_is_asked(client: "redis.asyncio.Redis", valkey: "redis.Redis") -> None:
    offer = (("p/a", 1000, 600), ("p/b", 1000, 600))
    await admit(client, "r0", taken(*offer))
    went = [await admit(client, "r1", taken(*offer)) for _ in range(3)]
    assert went == ["p/b"] * 3
    assert held(valkey, "p/b") == 600


async def test_it_never_fills_one_over_its_capacity(client: "redis.asyncio.Redis", valkey: "redis.Redis") -> None:
    offer = (("p/a", 1000, 70), ("p/b", 500, 90))
    answers = await asyncio.gather(
        *(admit(client, f"r{number}", taken(*offer)) for number in range(100)), return_exceptions=True
    )
    assert (answers.count("p/a"), answers.count("p/b")) == (14, 5)
    assert sum(isinstance(answer, NoRoom) for answer in answers) == 81
    for number in range(100):
        await holds.settle(client, request_id=f"r{number}", used={}, event=b"{}")
    assert valkey.keys("hr:m:*") == []


async def test_it_comes_back_by_reaper_and_withdrawal(client: "redis.asyncio.Redis", valkey: "redis.Redis") -> None:
    await admit(client, "dead", taken(("p/a", 1000, 600)), lease_ms=1)
    await admit(client, "doubtful", taken(("p/b", 1000, 600)))
    await asyncio.sleep(0.01)
    assert holds.reap(valkey, request_id="dead", used={}, event=b"{}", memory="{}") == "settled"
    await holds.withdraw(client, ["doubtful"])
    assert valkey.keys("hr:m:*") == []


async def test_it_is_listed_with_what_is_held(client: "redis.asyncio.Redis", valkey: "redis.Redis") -> None:
    await admit(client, "r1", taken(("p/a", 1000, 600), concurrency=5))
    [listed] = list(holds.living(valkey))
    assert listed["meters"] == [
        {"key": "hr:m:key:k1:concurrency", "measure": CONCURRENCY, "held": 1},
        {"key": "hr:m:room:p/a", "measure": "room", "held": 600},
    ]
