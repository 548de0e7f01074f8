"""Two versions side by side: what another one wrote to Redis stops nobody, and is done once by whoever knows it."""

import asyncio
import json
from collections.abc import Callable
from io import StringIO
from typing import Any

import msgspec
import pytest
import redis
import redis.asyncio
from django.core.management import call_command

from billing import settlement
from billing.usage import UsageEvent
from headrace.gateway.settlement.final_settlement import Settlement, deliver
from headrace.gateway.tests.test_crash_reaper import event_now
from headrace_dev.testing.invariants import eventually
from headrace_dev.testing.stores import Services
from headrace_dev.testing.world import at_rest
from tenants.meters import aside, holds
from tenants.meters.holds import HOLDS, USAGE

GAUGE = ["gauge", "hr:m:key:{name}:concurrency", "100", "1", "concurrency"]
BUCKET = ["bucket", "hr:m:key:{name}:output_tokens", "600", "50", "output_tokens"]


def meters(name: str, *more: object) -> list[object]:
    """A hold's meters as the version before this one wrote them, and `more`."""
    return [[each.format(name=name) for each in meter] for meter in (GAUGE, BUCKET)] + list(more)


def write_hold(client: "redis.Redis", name: str, held: object, **fields: Any) -> str:
    """A hold whose lease is over, field by field, as admission and renewal leave it; its request's id."""
    event = event_now()
    progress = {"input_tokens": 20, "output_tokens": 7, "usage_source": "reported"}
    record = msgspec.to_builtins(event) | fields.pop("record", {})
    hold: dict[Any, Any] = {"record": json.dumps(record), "meters": held if isinstance(held, str) else json.dumps(held)}
    hold |= {"expires": 1, "cost": "", "progress": json.dumps(progress)} | fields
    client.hset(f"hr:hold:{event.request_id}", mapping=hold)
    client.zadd(HOLDS, {event.request_id: 1})
    client.incr(GAUGE[1].format(name=name))
    return event.request_id


@pytest.fixture
def reap(services: Services, valkey: "redis.Redis") -> Callable[[], int]:
    """Reap, once that may be done at all."""
    eventually(lambda: holds.may_reap(valkey, lease_ms=200))
    return lambda: settlement.reap_expired(valkey, lease_seconds=0.2)


def told(valkey: "redis.Redis") -> list[UsageEvent]:
    entries: Any = valkey.xrange(USAGE)
    return [msgspec.json.decode(fields[b"e"], type=UsageEvent) for _, fields in entries]


def forget(valkey: "redis.Redis", strange: set[str]) -> None:
    valkey.delete(*(f"hr:hold:{one}" for one in strange), GAUGE[1].format(name="s"))
    valkey.zrem(HOLDS, *strange)


# What a version to come may leave in a hold, or a hand that slipped: none of it can be settled here.
STRANGE: dict[str, Callable[["redis.Redis"], str]] = {
    "a kind": lambda client: write_hold(client, "s", meters("s", ["prepaid", "hr:m:x", "5", "1", "cost"])),
    "a kind before the others": lambda client: write_hold(
        client, "s", [["prepaid", "hr:m:x", "5", "1", "cost"], *meters("s")]
    ),
    "an amount": lambda client: write_hold(client, "s", meters("s", ["bucket", "hr:m:x", "5", {"most": 1}, "cost"])),
    "a form of meter": lambda client: write_hold(client, "s", meters("s", {"kind": "bucket", "key": "hr:m:x"})),
    "no meters": lambda client: write_hold(client, "s", "[[["),
    "a version of the record": lambda client: write_hold(client, "s", meters("s"), record={"v": 2}),
    "a type of key": lambda client: _as_string(client),
}


def _as_string(client: "redis.Redis") -> str:
    request_id = write_hold(client, "s", meters("s"))
    client.delete(f"hr:hold:{request_id}")
    client.set(f"hr:hold:{request_id}", "compressed")
    return request_id


@pytest.mark.parametrize("write", STRANGE.values(), ids=STRANGE)
def test_a_hold_of_another_version_stops_no_other_and_changes_nothing(
    write: Callable[["redis.Redis"], str], reap: Callable[[], int], valkey: "redis.Redis"
) -> None:
    strange = {write(valkey) for _ in range(3)}
    good = {write_hold(valkey, "g", meters("g")) for _ in range(3)}
    assert reap() == 3
    assert {event.request_id for event in told(valkey)} == good
    for _ in range(5):  # every three seconds, for as long as it is there
        valkey.zadd(HOLDS, dict.fromkeys(strange, 1))
        assert reap() == 0
    assert valkey.get(GAUGE[1].format(name="s")) == b"3"
    assert valkey.get(GAUGE[1].format(name="g")) is None
    assert set(aside.read(valkey)) == strange
    assert valkey.zcount(HOLDS, "-inf", 1) == 0, "it is in the way of those behind it"
    output = StringIO()
    call_command("holds", stdout=output)
    assert output.getvalue().count("set aside") == 3
    forget(valkey, strange)
    assert aside.read(valkey) == {}
    assert not valkey.exists(aside.KEY)


def test_more_than_a_batch_of_them_stops_nobody(reap: Callable[[], int], valkey: "redis.Redis") -> None:
    strange = {STRANGE["a kind"](valkey) for _ in range(600)}
    good = write_hold(valkey, "g", meters("g"))
    valkey.zadd(HOLDS, {good: 2})  # after all of them
    eventually(lambda: reap() == 1)
    assert [event.request_id for event in told(valkey)] == [good]
    assert len(aside.read(valkey)) == 600
    forget(valkey, strange)


def test_a_version_that_knows_it_settles_it(reap: Callable[[], int], valkey: "redis.Redis") -> None:
    strange = STRANGE["a kind"](valkey)
    assert reap() == 0
    valkey.hset(f"hr:hold:{strange}", "meters", json.dumps(meters("s")))  # what that version makes of it
    valkey.zadd(HOLDS, {strange: 1})  # a minute later
    assert reap() == 1
    assert [event.request_id for event in told(valkey)] == [strange]
    reap()
    assert not valkey.exists(aside.KEY)
    at_rest(valkey)


def test_a_request_is_settled_by_its_own_process_though_its_hold_was_added_to(
    services: Services, valkey: "redis.Redis"
) -> None:
    """As a rebuild of a newer worker does with a new budget: what is known is given back, and recorded once."""
    request_id = STRANGE["a kind"](valkey)
    event = msgspec.structs.replace(event_now(), request_id=request_id)
    word = Settlement(request_id, {"output_tokens": 7}, json.dumps(meters("s")), event)

    async def say() -> None:
        client = redis.asyncio.Redis.from_url(services.redis_url)
        await deliver(client, word)
        await deliver(client, word)
        await client.aclose()

    asyncio.run(say())
    assert len(told(valkey)) == 1
    assert valkey.exists("hr:m:x") == 0
    at_rest(valkey)


# A hold of the version before this one, letter by letter.
PREVIOUS = {
    "record": b'{"v":1,"part":0,"request_id":"%s","tenant":"acme","project":"app","key":"k","model":"m","target":"t",'
    b'"replica":"t/r1","kind":"chat","status":"abandoned","finish_reason":null,"input_tokens":0,'
    b'"cached_input_tokens":0,"output_tokens":0,"reasoning_tokens":0,"usage_source":"reported","cost":"0","cost_nano":0,'
    b'"currency":"EUR","price":"m@1","rates":["1","0.25","4"],"admitted_at":"%s","finished_at":"","queue_ms":0,'
    b'"ttft_ms":null,"tpot_ms":null,"fallback":0,"cache":"none","upstream_id":null,"labels":{}}',
    "progress": b'{"input_tokens":20,"limited_input_tokens":20,"cached_input_tokens":10,"output_tokens":7,'
    b'"reasoning_tokens":0,"usage_source":"reported","ttft_ms":8.1,"upstream_id":"u","target":"t","replica":"t/r1",'
    b'"price":"m@1","rates":["1","0.25","4"]}',
}


@pytest.mark.parametrize("later", [False, True], ids=["as it was", "with fields to come"])
def test_a_hold_of_the_previous_version_is_settled_to_the_digit(
    later: bool, reap: Callable[[], int], valkey: "redis.Redis"
) -> None:
    event = event_now()
    record = PREVIOUS["record"] % (event.request_id.encode(), event.admitted_at.encode())
    progress = PREVIOUS["progress"]
    if later:
        record, progress = (text[:-1] + b',"class":"batch","tier":{"name":"flex"}}' for text in (record, progress))
    valkey.incr(GAUGE[1].format(name="p"))
    hold: dict[Any, Any] = {"record": record, "progress": progress, "meters": json.dumps(meters("p")), "expires": 1}
    valkey.hset(f"hr:hold:{event.request_id}", mapping=hold | ({"colour": "blue"} if later else {}))
    valkey.zadd(HOLDS, {event.request_id: 1})
    assert reap() == 1
    [said] = told(valkey)
    assert (said.status, said.input_tokens, said.cached_input_tokens, said.output_tokens) == ("reaped", 20, 10, 7)
    assert (said.cost_nano, said.price, said.target) == (10_000 + 2_500 + 28_000, "m@1", "t")
    memory: Any = valkey.get(f"hr:done:{event.request_id}")
    # What the previous version's process reads when it comes back.
    expected = {"input_tokens": 20, "cached_input_tokens": 10, "output_tokens": 7, "reasoning_tokens": 0}
    assert json.loads(memory.removeprefix(b"reaped:")) == expected | {"limited_input_tokens": 20}
    at_rest(valkey)
