"""The reaper: not before everybody alive could renew, not stopped by a hold it cannot read, and run by Celery."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
import redis.asyncio

from billing.settlement import reap_expired
from headrace.api.tests.conftest import QUICK
from headrace.stack.parts.celery import Beat, Worker
from headrace.stack.process import Process
from headrace.testing.clients import streams
from headrace.testing.invariants import eventually
from headrace.testing.services import Services
from headrace.testing.upstream import prompt
from headrace.testing.web import ROOT, WebProcess
from headrace.testing.world import World, at_rest, records
from tenants.meters import holds
from tenants.meters.holds import Taken
from tenants.meters.meter import CONCURRENCY, meters_of


def admit(services: Services, request_id: str, record: bytes) -> None:
    """A hold whose lease ends at once."""

    async def asking() -> None:
        client = redis.asyncio.Redis.from_url(services.redis_url)
        taken = Taken(meters_of("key", "k1", {"concurrency": 5}), {CONCURRENCY: 1})
        await holds.admit(client, request_id=request_id, lease_ms=0, taken=taken, record=record)
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
    assert reap_expired(valkey, lease_seconds=0.2) == 0
    time.sleep(0.5)
    assert reap_expired(valkey, lease_seconds=0.2) == 1


def test_it_gives_back_what_a_hold_it_cannot_read_has_taken(services: Services, valkey: "redis.Redis") -> None:
    for request_id, record in {"broken": b"{", "future": b'{"v":9}', "other": b'"text"'}.items():
        admit(services, request_id, record)
    assert valkey.get("hr:m:key:k1:concurrency") == b"3"
    eventually(lambda: reap_expired(valkey, lease_seconds=0.2) == 3)
    at_rest(valkey)
    entries: Any = valkey.xrange(holds.USAGE)
    assert {fields[b"e"] for _, fields in entries} == {b"{", b'{"v":9}', b'"text"'}  # for the drain to bury


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
    world: World, tmp_path: Path, celery: None, valkey: "redis.Redis"
) -> None:
    web = WebProcess(tmp_path / "web.log", **QUICK)
    try:
        world.wait_known(web.wait_ready())
        asyncio.run(cut(web, world))
    finally:
        web.kill()
    eventually(lambda: len(records(world)) == 5, 60)
    for record in records(world):
        assert (record.status, record.usage_source) == ("reaped", "reported")
        assert record.output_tokens > 0
    at_rest(valkey)


async def cut(web: WebProcess, world: World) -> None:
    """Five streams of a process that is killed."""
    running = await streams(web.url, world, 5, content=prompt(tokens=500, interval_ms=20))
    await asyncio.sleep(0.7)
    web.kill()
    assert {await stream.ended() for stream in running} == {"cut"}
