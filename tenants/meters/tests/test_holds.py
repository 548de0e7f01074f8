"""The scripts against a real Valkey: all or nothing, once, exactly, and by the server's own clock."""

import asyncio
import json
from typing import Any

import pytest
import redis
import redis.asyncio
from django.conf import settings

from tenants.meters import holds
from tenants.meters.holds import Refused, Taken, TooLarge
from tenants.meters.meter import CONCURRENCY, INPUT_TOKENS, OUTPUT_TOKENS, REQUESTS, Meter, meters_of

RECORD, MOVED = b'{"tenant":"acme"}', b'{"tenant":"acme","target":"b"}'


def taken(limits: dict[str, int | None], scope: str = "key", **amounts: int) -> Taken:
    defaults = {REQUESTS: 1, INPUT_TOKENS: 10, OUTPUT_TOKENS: 100, CONCURRENCY: 1}
    return Taken(meters_of(scope, "k1", limits), defaults | amounts)


async def admit(client: Any, request_id: str, what: Taken, lease_ms: int = 10_000) -> list[holds.Level]:
    return await holds.admit(client, request_id=request_id, lease_ms=lease_ms, taken=what, record=RECORD)


async def test_it_admits_exactly_the_limit_of_500_at_one_instant(client: "redis.asyncio.Redis") -> None:
    what = taken({"requests_per_minute": 10})
    answers = await asyncio.gather(*(admit(client, f"r{i}", what) for i in range(500)), return_exceptions=True)
    assert sum(not isinstance(answer, Refused) for answer in answers) == 10


async def test_it_takes_from_all_meters_or_from_none(client: "redis.asyncio.Redis") -> None:
    what = taken({"requests_per_minute": 5, "concurrency": 1})
    await admit(client, "r1", what)
    for number in range(20):
        with pytest.raises(Refused) as refused:
            await admit(client, f"more{number}", what)
        assert refused.value.meter.measure == CONCURRENCY
    await holds.settle(client, request_id="r1", used={}, event=b"{}")
    levels = await admit(client, "r2", what)
    assert [level.free for level in levels] == [3, 0]  # the refused ones took no request


async def test_it_says_exactly_when_the_same_request_succeeds(client: "redis.asyncio.Redis") -> None:
    what = taken({"output_tokens_per_minute": 6000}, output_tokens=6000)
    await admit(client, "r1", what)
    small = taken({"output_tokens_per_minute": 6000}, output_tokens=50)
    with pytest.raises(Refused) as refused:
        await admit(client, "r2", small)
    assert 400 <= refused.value.wait_ms <= 500  # 50 tokens at 100 a second
    await asyncio.sleep(refused.value.wait_ms / 1000)
    await admit(client, "r2", small)


async def test_it_never_refuses_a_caller_that_keeps_exactly_to_the_rate(client: "redis.asyncio.Redis") -> None:
    """31 tokens each 10 s under 186 a minute, in 1/100 of the time: 3100 tokens each 10 ms..., refilled to the unit."""
    limit = 60_000 * 31
    what = taken({"input_tokens_per_minute": limit}, input_tokens=limit)
    await admit(client, "full", what)
    small = taken({"input_tokens_per_minute": limit}, input_tokens=31 * 20)
    for number in range(10):
        await asyncio.sleep(0.021)
        await admit(client, f"r{number}", small)


async def test_it_refuses_for_good_what_could_never_fit(client: "redis.asyncio.Redis") -> None:
    with pytest.raises(TooLarge) as large:
        await admit(client, "r1", taken({"output_tokens_per_minute": 99}))
    assert (large.value.meter.measure, large.value.amount) == (OUTPUT_TOKENS, 100)


async def test_it_gives_back_what_was_not_used(client: "redis.asyncio.Redis") -> None:
    limits: dict[str, int | None] = {"output_tokens_per_minute": 1000, "input_tokens_per_minute": 1000}
    await admit(client, "r1", taken(limits, input_tokens=500, output_tokens=1000))
    await holds.settle(client, request_id="r1", used={INPUT_TOKENS: 700, OUTPUT_TOKENS: 20}, event=b"{}")
    levels = await admit(client, "r2", taken(limits, input_tokens=1, output_tokens=1))
    free = {level.meter.measure: level.free for level in levels}
    assert 299 <= free[INPUT_TOKENS] <= 305  # a little may have refilled
    assert 979 <= free[OUTPUT_TOKENS] <= 985


async def test_it_admits_and_settles_once_however_often_it_is_told(
    client: "redis.asyncio.Redis", valkey: "redis.Redis"
) -> None:
    what = taken({"requests_per_minute": 10, "concurrency": 5})
    for _ in range(3):
        levels = await admit(client, "r1", what)
        assert [level.free for level in levels] == [9, 4]
    said = [await holds.settle(client, request_id="r1", used={}, event=b"{}") for _ in range(3)]
    assert said == ["settled", "ended", "ended"]
    assert valkey.xlen(holds.USAGE) == 1
    assert valkey.get("hr:m:key:k1:concurrency") is None
    with pytest.raises(holds.Ended):
        await admit(client, "r1", what)


async def test_it_reaps_only_what_no_one_renews(client: "redis.asyncio.Redis", valkey: "redis.Redis") -> None:
    what = taken({"concurrency": 5})
    await admit(client, "dead", what, lease_ms=150)
    await admit(client, "alive", what, lease_ms=150)
    progress = {"alive": b'{"output_tokens":3}'}
    for _ in range(6):
        await asyncio.sleep(0.05)
        assert await holds.renew(client, lease_ms=150, progress=progress) == {"alive": "held"}
    expired = holds.expired(valkey)
    assert [hold.request_id for hold in expired] == ["dead"]
    assert holds.reap(valkey, request_id="alive", used={}, event=b"{}", memory="{}") == "alive"
    assert holds.reap(valkey, request_id="dead", used={}, event=b"{}", memory="{}") == "settled"
    assert holds.reap(valkey, request_id="dead", used={}, event=b"{}", memory="{}") == "ended"
    assert valkey.get("hr:m:key:k1:concurrency") == b"1"
    assert await holds.renew(client, lease_ms=150, progress={"dead": b"", "unknown": b""}) == {
        "dead": "reaped",
        "unknown": "lost",
    }


async def test_it_corrects_a_reaped_request_once(client: "redis.asyncio.Redis", valkey: "redis.Redis") -> None:
    limits: dict[str, int | None] = {"output_tokens_per_minute": 10_000}
    what = taken(limits, output_tokens=100)
    await admit(client, "r1", what, lease_ms=1)
    await asyncio.sleep(0.01)
    used = {INPUT_TOKENS: 10, OUTPUT_TOKENS: 40}
    assert holds.reap(valkey, request_id="r1", used=used, event=b'{"part":0}', memory='{"o":40}') == "settled"
    said = await holds.settle(client, request_id="r1", used={}, event=b'{"part":0}')
    assert said == 'reaped:{"o":40}'
    for answer in ("corrected", "ended"):
        given = await holds.correct(
            client,
            request_id="r1",
            tombstone=said,
            event=b'{"part":1}',
            taken=what.as_json(),
            more={OUTPUT_TOKENS: 60},
        )
        assert given == answer
    entries: Any = valkey.xrange(holds.USAGE)
    events = [json.loads(fields[b"e"]) for _, fields in entries]
    assert events == [{"part": 0}, {"part": 1}]
    levels = await admit(client, "r2", taken(limits, output_tokens=1))
    assert 9_899 <= levels[0].free <= 9_920


async def test_it_appends_the_whole_event_when_redis_lost_the_hold(
    client: "redis.asyncio.Redis", valkey: "redis.Redis"
) -> None:
    assert await holds.settle(client, request_id="r1", used={}, event=b'{"whole":1}') == "lost"
    assert await holds.settle(client, request_id="r1", used={}, event=b'{"whole":1}') == "ended"
    assert valkey.xlen(holds.USAGE) == 1
    assert valkey.keys("hr:m:*") == []


async def test_it_survives_the_loss_of_all_scripts(client: "redis.asyncio.Redis", valkey: "redis.Redis") -> None:
    await admit(client, "r1", taken({"concurrency": 1}))
    valkey.script_flush()
    assert await holds.settle(client, request_id="r1", used={}, event=b"{}") == "settled"


async def test_it_counts_exactly_at_the_largest_limit(client: "redis.asyncio.Redis") -> None:
    """10^11 a minute: the debt is 6 * 10^15 units, still whole numbers in Lua."""
    meter = Meter("bucket", "hr:m:key:k1:output_tokens", 10**11, OUTPUT_TOKENS, "key")
    what = Taken([meter], {OUTPUT_TOKENS: 10**11})
    [level] = await admit(client, "r1", what)
    assert level.free < 10**8  # a few milliseconds' refill at most
    await holds.settle(client, request_id="r1", used={OUTPUT_TOKENS: 10**11 - 1}, event=b"{}")


def test_it_lists_what_is_held(valkey: "redis.Redis") -> None:
    async def hold() -> None:
        client = redis.asyncio.Redis.from_url(settings.REDIS_URL)
        await admit(client, "r1", taken({"concurrency": 3, "requests_per_minute": 9}))
        await client.aclose()

    asyncio.run(hold())
    [listed] = list(holds.living(valkey))
    assert (listed["request_id"], listed["tenant"]) == ("r1", "acme")
    assert listed["meters"] == [
        {"key": "hr:m:key:k1:requests", "measure": REQUESTS, "held": 1},
        {"key": "hr:m:key:k1:concurrency", "measure": CONCURRENCY, "held": 1},
    ]


def room(name: str, most: int = 1) -> Meter:
    return Meter("gauge", f"hr:room:{name}", most, CONCURRENCY, "replica")


async def move(client: Any, request_id: str, step: int, *meters: Meter, **amounts: int) -> None:
    what = Taken(list(meters), {CONCURRENCY: 1, OUTPUT_TOKENS: 100} | amounts)
    progress = b'{"replica":"b"}'
    await holds.move(client, request_id=request_id, step=step, taken=what, record=MOVED, progress=progress)


async def test_it_moves_a_hold_to_other_meters_or_leaves_it_as_it_was(
    client: "redis.asyncio.Redis", valkey: "redis.Redis"
) -> None:
    [bucket] = meters_of("key", "k1", {"output_tokens_per_minute": 1000})
    for request_id in ("r1", "r2"):
        await admit(client, request_id, Taken([bucket, room(request_id)], {OUTPUT_TOKENS: 100, CONCURRENCY: 1}))
    with pytest.raises(Refused) as refused:
        await move(client, "r1", 1, bucket, room("r2"))
    assert refused.value.meter == room("r2")
    assert [valkey.get(f"hr:room:{name}") for name in ("r1", "r2")] == [b"1", b"1"]
    for _ in range(3):
        await move(client, "r1", 1, bucket, room("r3"), output_tokens=999)  # what it keeps is kept as it was taken
    assert [valkey.get(f"hr:room:{name}") for name in ("r1", "r2", "r3")] == [None, b"1", b"1"]
    [moved] = [hold for hold in holds.living(valkey) if hold["request_id"] == "r1"]
    assert moved["meters"] == [
        {"key": bucket.key, "measure": OUTPUT_TOKENS, "held": 100},
        {"key": "hr:room:r3", "measure": CONCURRENCY, "held": 1},
    ]
    assert valkey.hmget("hr:hold:r1", ["record", "progress"]) == [MOVED, b'{"replica":"b"}']
    await move(client, "r1", 2)
    for request_id in ("r1", "r2"):
        assert await holds.settle(client, request_id=request_id, used={}, event=b"{}") == "settled"
    assert valkey.keys("hr:room:*") == []


async def test_it_moves_no_hold_that_has_ended(client: "redis.asyncio.Redis", valkey: "redis.Redis") -> None:
    await admit(client, "r1", taken({"concurrency": 1}))
    await holds.settle(client, request_id="r1", used={}, event=b"{}")
    for request_id in ("r1", "unknown"):
        with pytest.raises(holds.Gone):
            await move(client, request_id, 1, room("r2"))
    assert valkey.keys("hr:room:*") == []


async def test_progress_made_before_a_move_does_not_come_after_it(
    client: "redis.asyncio.Redis", valkey: "redis.Redis"
) -> None:
    what = taken({"concurrency": 5})
    await admit(client, "r1", what)
    await holds.move(client, request_id="r1", step=1, taken=what, record=b"{}", progress=b'"there"')
    for steps, kept in ((None, b'"there"'), ({"r1": 1}, b'"here"')):
        await holds.renew(client, lease_ms=1000, progress={"r1": b'"here"'}, steps=steps)
        assert valkey.hget("hr:hold:r1", "progress") == kept
