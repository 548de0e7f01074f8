"""The reaper: not before everybody alive could renew, not stopped by a hold it cannot read, and run by Celery."""

import asyncio
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis
import redis.asyncio

from billing.models import UsageRecord
from billing.pricing import Rates
from billing.settlement import reap_expired
from billing.usage import Progress, UsageEvent, iso, new_request_id, priced
from headrace.gateway.settlement.final_settlement import Settlement, deliver
from headrace.gateway.tests.conftest import QUICK
from headrace.stack.parts.celery import Beat, Worker
from headrace.stack.process import Process
from headrace_dev.testing.invariants import eventually
from headrace_dev.testing.stores import Services
from headrace_dev.testing.web import ROOT
from headrace_dev.testing.world import at_rest
from tenants.meters import aside, holds
from tenants.meters.holds import Taken
from tenants.meters.meter import CONCURRENCY, COST, INPUT_TOKENS, OUTPUT_TOKENS, Meter, meters_of


def admit(
    services: Services, request_id: str, record: bytes, progress: bytes = b"", taken: Taken | None = None
) -> None:
    """A hold whose lease ends at once."""

    async def asking() -> None:
        client = redis.asyncio.Redis.from_url(services.redis_url)
        some = taken or Taken(meters_of("key", "k1", {"concurrency": 5}), {CONCURRENCY: 1})
        await holds.admit(client, request_id=request_id, lease_ms=0, taken=some, record=record)
        await holds.renew(client, lease_ms=0, progress={request_id: progress})
        await client.aclose()

    asyncio.run(asking())


def test_it_waits_a_lease_when_nobody_has_asked_for_one(services: Services, valkey: "redis.Redis") -> None:
    """It cannot tell a Redis that was frozen from a reaper that was not there."""
    admit(services, "r1", b"{}")
    began = time.monotonic()
    while not reap_expired(valkey, lease_seconds=0.5):
        assert time.monotonic() - began < 5
        time.sleep(0.05)
    assert time.monotonic() - began >= 0.45
    admit(services, "r2", b"{}")
    time.sleep(0.1)
    assert reap_expired(valkey, lease_seconds=0.5) == 1  # it has been at work all the time


def test_it_gets_its_turn_though_it_always_comes_late(services: Services, valkey: "redis.Redis") -> None:
    admit(services, "r1", b"{}")
    reaped = []
    for _ in range(3):
        reaped.append(reap_expired(valkey, lease_seconds=0.2))
        time.sleep(0.3)
    assert reaped == [0, 0, 1]


def test_it_waits_again_where_nobody_could_ask_while_it_waited(services: Services, valkey: "redis.Redis") -> None:
    """Redis froze when the reaper had only begun, or had thawed: no process could renew since."""
    admit(services, "r1", b"{}")
    assert reap_expired(valkey, lease_seconds=0.5) == 0
    time.sleep(0.7)
    began = time.monotonic()
    while not reap_expired(valkey, lease_seconds=0.5):
        assert time.monotonic() - began < 5
        time.sleep(0.05)
    assert time.monotonic() - began >= 0.45


def test_it_gives_back_what_a_hold_it_cannot_read_has_taken(services: Services, valkey: "redis.Redis") -> None:
    for request_id, record in {"broken": b"{", "future": b'{"v":9}', "other": b'"text"'}.items():
        admit(services, request_id, record)
    assert valkey.get("hr:m:key:k1:concurrency") == b"3"
    eventually(lambda: reap_expired(valkey, lease_seconds=0.2) == 3)
    at_rest(valkey)
    entries: Any = valkey.xrange(holds.USAGE)
    assert {fields[b"e"] for _, fields in entries} == {b"{", b'{"v":9}', b'"text"'}  # for the drain to bury


def event_now() -> UsageEvent:
    return UsageEvent(
        request_id=str(new_request_id(now := int(time.time() * 1000))),
        tenant="acme",
        project="app",
        key="key",
        model="model",
        target="target",
        replica="target/r1",
        currency="USD",
        admitted_at=iso(now),
    )


def test_note_of_another_version_keeps_no_hold_from_being_reaped(services: Services, valkey: "redis.Redis") -> None:
    event = event_now()
    admit(services, event.request_id, msgspec.json.encode(event))
    valkey.hset(aside.KEY, event.request_id, "[2]")
    assert aside.read(valkey)[event.request_id].since == "0"
    eventually(lambda: reap_expired(valkey, lease_seconds=0.2) == 1)
    assert aside.read(valkey) == {}


def test_it_weighs_cached_input_as_its_tenant_does_and_so_does_the_late_word(
    services: Services, valkey: "redis.Redis"
) -> None:
    event, limit = event_now(), 600
    taken = Taken(meters_of("key", "weighed", {"input_tokens_per_minute": limit}), {INPUT_TOKENS: 500})
    progress = Progress(input_tokens=400, cached_input_tokens=300, limited_input_tokens=100, output_tokens=7)

    def owed() -> float:
        return float(valkey.hget("hr:m:key:weighed:input_tokens", "debt") or 0) / 60000

    admit(services, event.request_id, msgspec.json.encode(event), msgspec.json.encode(progress), taken)
    assert owed() > 490
    eventually(lambda: reap_expired(valkey, lease_seconds=0.2) == 1)
    assert 60 < owed() <= 100  # ten a second drain
    late = msgspec.structs.replace(event, input_tokens=420, cached_input_tokens=300, output_tokens=9)
    word = Settlement(event.request_id, {INPUT_TOKENS: 120, OUTPUT_TOKENS: 9}, taken.as_json().decode(), late)

    async def saying() -> None:
        client = redis.asyncio.Redis.from_url(services.redis_url)
        await deliver(client, word)
        await client.aclose()

    asyncio.run(saying())
    assert 60 < owed() <= 120
    at_rest(valkey)


def test_the_late_word_gives_back_what_the_reaper_had_estimated(services: Services, valkey: "redis.Redis") -> None:
    """147 tokens of a prompt that had 268, of which 222 came from a cache: in the budget and in the limits."""
    rates = Rates(Decimal(1), Decimal("0.25"), Decimal(4))
    event = msgspec.structs.replace(event_now(), rates=rates, price="p@1")
    budget = Meter("soft_budget", "hr:b:late:0", 10**12, COST, "late")
    buckets = meters_of("key", "late", {"input_tokens_per_minute": 600, "output_tokens_per_minute": 600})
    held = {INPUT_TOKENS: 500, OUTPUT_TOKENS: 100, COST: 10**6}
    taken = Taken([*buckets, budget], held)
    valkey.hset(budget.key, mapping={"spent": 0, "held": 0})
    progress = Progress(
        input_tokens=147, output_tokens=12, usage_source="estimated", rates=rates, price="p@1", target="t"
    )
    admit(services, event.request_id, msgspec.json.encode(event), msgspec.json.encode(progress), taken)
    eventually(lambda: reap_expired(valkey, lease_seconds=0.2) == 1)
    assert valkey.hmget(budget.key, "spent", "held") == [b"%d" % (147_000 + 48_000), b"0"]

    final = priced(
        msgspec.structs.replace(event, input_tokens=268, cached_input_tokens=222, output_tokens=10, target="t")
    )
    word = Settlement(
        event.request_id,
        {INPUT_TOKENS: 46, OUTPUT_TOKENS: 10, COST: final.cost_nano or 0},
        taken.as_json().decode(),
        final,
    )
    say(services, word)
    say(services, word)  # it may be repeated
    assert valkey.hmget(budget.key, "spent", "held") == [b"%d" % (46_000 + 55_500 + 40_000), b"0"]
    assert owed(valkey, "late", INPUT_TOKENS) <= 46
    assert owed(valkey, "late", OUTPUT_TOKENS) <= 10
    entries: Any = valkey.xrange(holds.USAGE)
    said = [msgspec.json.decode(fields[b"e"], type=UsageEvent) for _, fields in entries]
    assert [(one.part, one.input_tokens, one.cached_input_tokens, one.output_tokens) for one in said] == [
        (0, 147, 0, 12), (1, 121, 222, -2)
    ]  # fmt: skip
    assert said[1].cost_nano == -101_000 + 55_500 - 8_000
    at_rest(valkey)


def test_a_late_word_adds_nothing_that_its_client_did_not_receive(services: Services, valkey: "redis.Redis") -> None:
    event, taken = (
        event_now(),
        Taken(meters_of("key", "unseen", {"output_tokens_per_minute": 600}), {OUTPUT_TOKENS: 90}),
    )
    admit(services, event.request_id, msgspec.json.encode(event), msgspec.json.encode(Progress()), taken)
    eventually(lambda: reap_expired(valkey, lease_seconds=0.2) == 1)
    late = msgspec.structs.replace(event, input_tokens=100, output_tokens=50)
    word = Settlement(event.request_id, {OUTPUT_TOKENS: 50}, taken.as_json().decode(), late, is_received=False)
    say(services, word)
    assert valkey.xlen(holds.USAGE) == 1
    assert owed(valkey, "unseen", OUTPUT_TOKENS) == 0
    assert valkey.get(f"hr:done:{event.request_id}") == b"final"


def say(services: Services, word: Settlement) -> None:
    async def saying() -> None:
        client = redis.asyncio.Redis.from_url(services.redis_url)
        await deliver(client, word)
        await client.aclose()

    asyncio.run(saying())


def owed(valkey: "redis.Redis", key: str, measure: str) -> float:
    """The debt of a token bucket as it was stored."""
    return float(valkey.hget(f"hr:m:key:{key}:{measure}", "debt") or 0) / 60000


@pytest.fixture
def celery(services: Services, tmp_path: Path) -> Iterator[None]:
    environment = {**QUICK, "PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}"}
    parts = [Process(Worker(environment), tmp_path), Process(Beat(tmp_path / "beat", environment), tmp_path)]
    for part in parts:
        part.start()
    yield
    for part in parts:
        part.kill()


def test_it_runs_in_celery_and_what_it_settles_reaches_the_ledger(
    services: Services, celery: None, valkey: "redis.Redis"
) -> None:
    event = event_now()
    progress = Progress(input_tokens=20, cached_input_tokens=10, output_tokens=7)
    admit(services, event.request_id, msgspec.json.encode(event), msgspec.json.encode(progress))
    found = UsageRecord.objects.filter(request_id=event.request_id)
    eventually(found.exists, 60)
    record = found.get()
    assert (record.status, record.input_tokens, record.output_tokens) == ("reaped", 20, 7)
    at_rest(valkey)
