"""Budgets against a real Valkey: exact to the unit, never passed, and made only by a rebuild."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
import redis
import redis.asyncio
from django.conf import settings

from tenants.meters import counters, holds
from tenants.meters.holds import Exhausted, Held, NotHeld, Rebuilding, Refused, Taken, TooLarge
from tenants.meters.meter import COST, REQUESTS, Meter

KEY = "hr:b:7:1767225600"
FIRST, LAST = "2026-01-01T00:00:00.000Z", "2026-02-01T00:00:00.000Z"
RECORD: dict[str, Any] = {
    "tenant": "acme", "project": "web", "key": "ABC", "model": "demo", "part": 0,
    "admitted_at": "2026-01-15T12:00:00.000Z",
}  # fmt: skip
HUGE = 10**16


@pytest.fixture
def valkey() -> Iterator["redis.Redis"]:
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        assert counters.trust(client, counters.run_id(client))
        yield client


def budget(limit: int, *, kind: str = "budget", key: str = KEY) -> Meter:
    return Meter(kind, key, limit, COST, "monthly")


def make(valkey: "redis.Redis", spent: int = 0, key: str = KEY, **scope: str) -> None:
    whose = {"tenant": "acme", "project": "", "api_key": "", "model": "", "first": FIRST, "last": LAST} | scope
    counters.rebuild(valkey, [counters.Wanted(key=key, ledger=spent, expires_ms=None, **whose)])


def state(valkey: "redis.Redis", key: str = KEY) -> tuple[int, int]:
    [counter] = counters.read(valkey, [key])
    assert counter is not None
    return counter.spent, counter.held


async def admit(client: Any, request_id: str, amount: int, *meters: Meter, **record: Any) -> list[holds.Level]:
    taken = Taken(list(meters), {COST: amount, REQUESTS: 1})
    text = json.dumps(RECORD | record).encode()
    return await holds.admit(client, request_id=request_id, lease_ms=10_000, taken=taken, record=text)


def event(request_id: str, cost: int, **changes: Any) -> bytes:
    return json.dumps(RECORD | {"request_id": request_id, "cost_nano": cost} | changes).encode()


async def settle(client: Any, request_id: str, cost: int, *meters: Meter, **changes: Any) -> str:
    taken = Taken(list(meters), {COST: 0}).as_json()
    return await holds.settle(
        client, request_id=request_id, used={COST: cost}, event=event(request_id, cost, **changes), taken=taken
    )


async def test_it_never_admits_more_of_500_at_one_instant_than_the_budget_covers(
    client: "redis.asyncio.Redis", valkey: "redis.Redis"
) -> None:
    make(valkey)
    said = await asyncio.gather(
        *(admit(client, f"r{i}", 100, budget(1_050)) for i in range(500)), return_exceptions=True
    )
    assert sum(not isinstance(answer, Exception) for answer in said) == 10
    assert {type(answer) for answer in said if isinstance(answer, Exception)} == {Held}
    assert state(valkey) == (0, 1000)


@pytest.mark.parametrize(("spent", "amount"), [(0, HUGE), (1, HUGE - 1), (HUGE - 1, 1), (2**53, HUGE - 2**53)])
async def test_it_is_exact_to_the_unit_at_ten_million_of_money(
    client: "redis.asyncio.Redis", valkey: "redis.Redis", spent: int, amount: int
) -> None:
    make(valkey, spent)
    with pytest.raises(Exhausted) as exhausted:
        await admit(client, "r0", amount + 1, budget(HUGE))
    assert exhausted.value.left == HUGE - spent
    [level] = await admit(client, "r1", amount, budget(HUGE))
    assert level.free == 0
    with pytest.raises(NotHeld):
        await admit(client, "r2", 1, budget(HUGE))
    assert state(valkey) == (spent, amount)
    await settle(client, "r1", amount - 1)
    assert state(valkey) == (spent + amount - 1, 0)
    [level] = await admit(client, "r3", 1, budget(HUGE))
    assert level.free == 0


async def test_it_waits_for_money_that_is_only_held_and_not_for_money_that_is_spent(
    client: "redis.asyncio.Redis", valkey: "redis.Redis"
) -> None:
    make(valkey, 40)
    await admit(client, "r1", 50, budget(100))
    with pytest.raises(Held) as held:
        await admit(client, "r2", 60, budget(100))
    assert held.value.wait_ms == 2000
    with pytest.raises(Exhausted) as exhausted:
        await admit(client, "r2", 61, budget(100))
    assert (exhausted.value.left, exhausted.value.amount) == (60, 61)
    await settle(client, "r1", 0)
    await admit(client, "r2", 60, budget(100))


async def test_it_gives_the_most_final_answer_of_several(client: "redis.asyncio.Redis", valkey: "redis.Redis") -> None:
    make(valkey, 90, key="hr:b:1:0")
    make(valkey, 95, key="hr:b:2:0")
    make(valkey, 0, key="hr:b:3:0")
    gone, less, roomy = (budget(100, key=f"hr:b:{number}:0") for number in (1, 2, 3))
    slow = Meter("bucket", "hr:m:key:k1:requests", 1, REQUESTS, "key")
    await admit(client, "r1", 0, slow)
    await admit(client, "r2", 95, roomy)
    with pytest.raises(Exhausted) as exhausted:
        await admit(client, "r3", 20, slow, roomy, gone, less)
    assert (exhausted.value.meter.key, exhausted.value.left) == ("hr:b:2:0", 5), "the one with the least left"
    with pytest.raises(Refused) as refused:
        await admit(client, "r3", 20, roomy, slow)
    assert refused.value.meter is slow, "the longest wait"
    with pytest.raises(TooLarge):
        await admit(client, "r3", 20, gone, Meter("gauge", "hr:m:key:k1:concurrency", 0, REQUESTS, "key"))
    assert [state(valkey, f"hr:b:{number}:0") for number in (1, 2, 3)] == [(90, 0), (95, 0), (0, 95)]


async def test_it_refuses_nobody_under_a_soft_budget_and_counts_all(
    client: "redis.asyncio.Redis", valkey: "redis.Redis"
) -> None:
    make(valkey, 150)
    soft = budget(100, kind="soft_budget")
    await admit(client, "r1", 10, soft)
    assert state(valkey) == (150, 10)
    await settle(client, "r1", 7)
    assert state(valkey) == (157, 0)


@pytest.mark.parametrize("damage", ["missing", "garbage", "another type", "half"])
async def test_it_asks_for_a_counter_that_is_not_there(
    client: "redis.asyncio.Redis", valkey: "redis.Redis", damage: str
) -> None:
    if damage == "garbage":
        valkey.hset(KEY, mapping={"spent": "12.5", "held": "nan"})
    elif damage == "another type":
        valkey.set(KEY, "-1")
    elif damage == "half":
        valkey.hset(KEY, "spent", "1")
    with pytest.raises(Rebuilding):
        await admit(client, "r1", 10, budget(100))
    await admit(client, "r2", 10, budget(100, kind="soft_budget"))
    assert counters.wanted(valkey) == {KEY} == counters.wanted(valkey)
    counters.forget_wanted(valkey, {KEY})
    assert counters.wanted(valkey) == set()
    make(valkey, 5)
    assert state(valkey) == (5, 10), "what runs is held, though it was admitted before there was a counter"
    await settle(client, "r2", 3)
    assert state(valkey) == (8, 0)


async def test_it_makes_no_counter_when_it_settles(client: "redis.asyncio.Redis", valkey: "redis.Redis") -> None:
    make(valkey)
    await admit(client, "r1", 10, budget(100))
    await admit(client, "r2", 10, budget(100))
    valkey.delete(KEY)
    await settle(client, "r1", 4)
    await holds.withdraw(client, ["r2"])
    assert await settle(client, "r3", 4, budget(100)) == "lost"
    assert valkey.exists(KEY) == 0


async def test_it_trusts_no_counter_of_another_run_of_the_server(
    client: "redis.asyncio.Redis", valkey: "redis.Redis"
) -> None:
    make(valkey)
    for stale in (None, "0" * 40):
        valkey.set(counters.EPOCH, stale) if stale else valkey.delete(counters.EPOCH)
        with pytest.raises(Rebuilding):
            await admit(client, "r1", 10, budget(100))
        await admit(client, f"soft-{stale}", 10, budget(100, kind="soft_budget"))
    assert not counters.trust(valkey, "0" * 40)
    assert counters.trust(valkey, counters.run_id(valkey))
    await admit(client, "r1", 10, budget(100))


async def test_it_sets_a_counter_to_the_ledger_the_stream_and_the_holds(
    client: "redis.asyncio.Redis", valkey: "redis.Redis"
) -> None:
    make(valkey, project="web", model="demo")
    await admit(client, "r1", HUGE, budget(HUGE * 3))
    await admit(client, "r2", 100, budget(HUGE * 3))
    await settle(client, "r1", HUGE // 2 + 1)
    await admit(client, "other", 100, project="mobile")  # no budget of its own
    for text in (
        event("e1", HUGE // 2 + 1),
        event("e1", HUGE // 2 + 1),  # delivered twice
        event("e1", 7, part=1),  # its correction
        event("e2", 1, project="mobile"),
        event("e3", 1, model="other"),
        event("e4", 1, tenant="globex"),
        event("e5", 1, admitted_at=LAST),
        event("e6", 5, admitted_at=FIRST),
        event("e7", 1, labels={"x": 'y","cost_nano":99'}),
        b"not json",
        b'{"cost_nano": 5}',
    ):
        valkey.xadd(holds.USAGE, {"e": text})
    for _ in range(2):  # set, never added
        make(valkey, 1000, project="web", model="demo")
        assert state(valkey) == (1000 + 2 * (HUGE // 2 + 1) + 7 + 5 + 1, 100)


async def test_it_has_a_new_budget_hold_what_already_runs(client: "redis.asyncio.Redis", valkey: "redis.Redis") -> None:
    make(valkey, key="hr:b:1:0")
    await admit(client, "r1", 30)
    await admit(client, "r2", 20, budget(100, key="hr:b:1:0"))
    await admit(client, "r3", 5, tenant="globex")
    make(valkey)
    make(valkey)
    assert state(valkey) == (0, 50)
    await settle(client, "r1", 10)
    await holds.withdraw(client, ["r2"])
    await settle(client, "r3", 5)
    assert state(valkey) == (10, 0)


async def test_it_charges_what_redis_lost_and_what_is_corrected(
    client: "redis.asyncio.Redis", valkey: "redis.Redis"
) -> None:
    make(valkey)
    await admit(client, "r1", 50, budget(100))
    valkey.flushall()
    make(valkey)
    assert await settle(client, "r1", 40, budget(100)) == "lost"
    assert state(valkey) == (40, 0)
    await admit(client, "r2", 50, budget(100, kind="soft_budget"))
    await holds.renew(client, lease_ms=0, progress={"r2": b"{}"})
    await asyncio.sleep(0.005)
    assert holds.reap(valkey, request_id="r2", used={COST: 20}, event=b"{}", memory="m") == "settled"
    taken = Taken([budget(100)], {COST: 50}).as_json()
    for _ in range(2):
        await holds.correct(
            client, request_id="r2", tombstone="reaped:m", event=b'{"part":1}', taken=taken, more={COST: 15}
        )
    assert state(valkey) == (75, 0)


async def test_it_never_fails_to_settle_at_the_end_of_the_numbers(
    client: "redis.asyncio.Redis", valkey: "redis.Redis"
) -> None:
    soft = budget(HUGE, kind="soft_budget")
    make(valkey, counters.MOST)
    await admit(client, "r1", 10, soft)
    await settle(client, "r1", 2**62)
    assert state(valkey) == (counters.MOST, 0)
    with pytest.raises(Exhausted):
        await admit(client, "r2", 1, budget(HUGE))
