"""A rebuild reads holds and stream in pieces, while requests come and go, and is exact at the instant it sets."""

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import redis
import redis.asyncio
from django.conf import settings

from tenants.meters import counters, holds
from tenants.meters.counters import Wanted
from tenants.meters.holds import Taken
from tenants.meters.meter import COST, Meter

FIRST, LAST = "2026-01-01T00:00:00.000Z", "2026-02-01T00:00:00.000Z"
RECORD: dict[str, Any] = {
    "tenant": "acme", "project": "web", "key": "ABC", "model": "demo", "part": 0,
    "admitted_at": "2026-01-15T12:00:00.000Z",
}  # fmt: skip
ALL, NEW, OTHER = "hr:b:1:0", "hr:b:2:0", "hr:b:3:0"
# What the counters must be at one instant, by a script that reads every hold and entry in one step.
ORACLE = """
local spent, held = 0, 0
for _, entry in ipairs(redis.call('XRANGE', 'hr:usage', '-', '+')) do
  spent = spent + tonumber(string.match(entry[2][2], '"cost_nano": (%-?%d+)'))
end
for _, id in ipairs(redis.call('ZRANGE', 'hr:holds', 0, -1)) do
  held = held + tonumber(redis.call('HGET', 'hr:hold:' .. id, 'cost'))
end
local answer = {}
for _, key in ipairs(KEYS) do
  local counter = redis.call('HMGET', key, 'spent', 'held')
  answer[#answer + 1] = counter[1] == tostring(spent) and counter[2] == tostring(held)
    and 'exact' or key .. ' ' .. counter[1] .. ' ' .. counter[2] .. ' is not ' .. spent .. ' ' .. held
end
return answer
"""


@pytest.fixture
def valkey() -> Iterator["redis.Redis"]:
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        assert counters.trust(client, counters.run_id(client))
        yield client


def wanted(key: str, tenant: str = "acme") -> Wanted:
    return Wanted(key, tenant, "", "", "", FIRST, LAST, 0, None)


async def admit(client: Any, request_id: str, amount: int, *keys: str) -> Taken:
    taken = Taken([Meter("budget", key, 10**15, COST, "monthly") for key in keys], {COST: amount})
    record = json.dumps(RECORD | {"request_id": request_id}).encode()
    await holds.admit(client, request_id=request_id, lease_ms=60_000, taken=taken, record=record)
    return taken


async def settle(client: Any, request_id: str, cost: int) -> None:
    event = json.dumps(RECORD | {"request_id": request_id, "cost_nano": cost}).encode()
    await holds.settle(client, request_id=request_id, used={COST: cost}, event=event)


async def test_rebuilds_are_exact_while_requests_come_and_go(
    client: "redis.asyncio.Redis", valkey: "redis.Redis"
) -> None:
    """Half of the requests know only one of the budgets: rebuilds have them name the other."""
    counters.rebuild(valkey, [wanted(ALL), wanted(NEW)])
    for number in range(1000):
        await admit(client, f"old{number}", 7, ALL)
    stopped, said = threading.Event(), []

    def rebuild() -> None:
        with redis.Redis.from_url(settings.REDIS_URL) as own:
            while not stopped.is_set():
                counters.rebuild(own, [wanted(ALL), wanted(NEW), wanted(OTHER, "globex")])

    async def use(lane: int) -> None:
        for number in range(60):
            request_id = f"{lane}.{number}"
            await admit(client, request_id, 10 + number, ALL, *([NEW] if number % 2 else []))
            if number % 3 == 0:
                await holds.withdraw(client, [request_id])
            elif number % 3 == 1:
                await settle(client, request_id, number)
            await settle(client, f"old{lane * 60 + number}", 1)
            said.append((await client.eval(ORACLE, 1, ALL))[0])

    thread = threading.Thread(target=rebuild)
    thread.start()
    try:
        await asyncio.gather(*(use(lane) for lane in range(8)))
    finally:
        stopped.set()
        await asyncio.to_thread(thread.join)
    assert set(said) == {b"exact"}
    counters.rebuild(valkey, [wanted(ALL), wanted(NEW), wanted(OTHER, "globex")])
    assert set(await client.eval(ORACLE, 2, ALL, NEW)) == {b"exact"}
    [other] = counters.read(valkey, [OTHER])
    assert other is not None
    assert (other.spent, other.held) == (0, 0)
    assert not valkey.keys("hr:rebuild:*")


def test_entries_that_are_no_events_keep_no_counter_from_being_made(valkey: "redis.Redis") -> None:
    big = RECORD | {"request_id": "2", "cost_nano": 10**30}
    events: list[Any] = [
        RECORD | {"request_id": "1", "cost_nano": 5}, [], {"tenant": ["acme"]}, RECORD | {"tenant": {"a": 1}},
        RECORD | {"request_id": [], "cost_nano": True, "project": {}}, big,
    ]  # fmt: skip
    texts = [json.dumps(event).encode() for event in events] + [b"\xff", b"[" * 10**5, b'{"a":' * 10**5]
    for text in texts:
        valkey.xadd(holds.USAGE, {"e": text})
    counters.rebuild(valkey, [wanted(ALL)])
    [counter] = counters.read(valkey, [ALL])
    assert counter is not None
    assert counter.spent == counters.MOST


async def test_no_call_of_a_rebuild_reads_more_than_a_piece(
    client: "redis.asyncio.Redis", valkey: "redis.Redis"
) -> None:
    """Redis counts its calls: those of scripts do not grow with the holds."""
    counters.rebuild(valkey, [wanted(ALL)])

    async def calls(live: int) -> tuple[int, int]:
        for number in range(live):
            await admit(client, f"{live}.{number}", 1, ALL)
        await client.config_resetstat()
        counters.rebuild(valkey, [wanted(ALL)])
        stats: Any = await client.info("commandstats")
        return stats["cmdstat_evalsha"]["calls"], stats["cmdstat_zdiff"]["calls"]

    few = await calls(10)
    assert await calls(1000) == few
    assert list(holds.living(valkey))


async def test_a_listing_of_holds_is_read_in_pieces(client: "redis.asyncio.Redis", valkey: "redis.Redis") -> None:
    for number in range(700):
        await admit(client, f"r{number}", 1)
    await client.config_resetstat()
    assert len({hold["request_id"] for hold in holds.living(valkey)}) == 700
    with redis.Redis.from_url(settings.REDIS_URL) as fresh:
        sent = int(fresh.info("stats")["total_reads_processed"])
    assert sent < 60


@pytest.mark.parametrize("kind", ["budget", "soft_budget"])
async def test_no_number_of_requests_overflows_what_is_held(
    client: "redis.asyncio.Redis", valkey: "redis.Redis", kind: str
) -> None:
    counters.rebuild(valkey, [wanted(ALL)])
    limit, each, held = 8 * 10**18, 10**18, []
    for number in range(330):
        taken = Taken([Meter(kind, ALL, limit, COST, "monthly")], {COST: each})
        record = json.dumps(RECORD | {"request_id": f"r{number}"}).encode()
        try:
            await holds.admit(client, request_id=f"r{number}", lease_ms=60_000, taken=taken, record=record)
            held.append(f"r{number}")
        except holds.Held:
            pass
        [counter] = counters.read(valkey, [ALL])
        assert counter is not None
        assert counter.held == len(held) * each
    assert len(held) == (8 if kind == "budget" else 9)
    counters.rebuild(valkey, [wanted(ALL)])
    hard = Taken([Meter("budget", ALL, limit, COST, "monthly")], {COST: each})
    for number in range(40):
        with pytest.raises(holds.Held):
            await holds.admit(client, request_id=f"h{number}", lease_ms=60_000, taken=hard, record=b"{}")
    for request_id in held:
        await settle(client, request_id, each)
    [counter] = counters.read(valkey, [ALL])
    assert counter is not None
    assert (counter.spent, counter.held) == (len(held) * each, 0)
    if kind == "soft_budget":  # all sums stay at the most that a counter can hold, and at nothing
        with pytest.raises(holds.Exhausted):
            await holds.admit(client, request_id="over", lease_ms=60_000, taken=hard, record=b"{}")
