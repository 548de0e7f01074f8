"""From a web process's memory to hours in Postgres: each refusal counted once, whoever dies or asks twice."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis
import redis.asyncio
from django.conf import settings
from django.db import DatabaseError
from django.utils import timezone

from billing.models import RefusalBatch, RefusedHour
from billing.rejections import counting, draining, expiry
from billing.rejections.counting import BATCHES, PREFIX, Refusals
from billing.tests.stream import connect
from tenants.tests.cast import make_tenant

pytestmark = pytest.mark.django_db
WHO = {"tenant": "acme", "project": "web", "key": "ABCDEFGHIJKL"}


@pytest.fixture
def client() -> Iterator["redis.Redis"]:
    with connect() as client:
        client.flushdb()
        yield client


async def tell(*codes: str, times: int = 1) -> Refusals:
    """A process that refuses with `codes`, and tells `times` times."""
    connection = redis.asyncio.Redis.from_url(settings.REDIS_URL)
    refusals = Refusals(connection)
    for code in codes:
        refusals.count(**WHO, code=code)
    for _ in range(times):
        await refusals.tell()
    await connection.aclose()
    return refusals


def batch(client: Any, name: str, at: datetime, number: int = 1, **who: str) -> None:
    """As a process tells it."""
    parts = {**WHO, **who}
    field = f"{parts['tenant']} {parts['project']} {parts['key']} budget_exhausted {int(at.timestamp()) // 900 * 900}"
    client.hset(PREFIX + name, field, number)
    client.sadd(BATCHES, name)


def counts() -> dict[str, int]:
    return dict(RefusedHour.objects.values_list("code", "requests"))


async def test_it_tells_once_what_was_counted(client: Any) -> None:
    await tell("budget_exhausted", "budget_exhausted", "no_capacity", times=3)
    [name] = client.smembers(BATCHES)
    numbers = client.hgetall(PREFIX + name.decode())
    assert sorted(numbers.values()) == [b"1", b"2"]
    assert client.ttl(PREFIX + name.decode()) > 24 * 3600


async def test_it_tells_the_same_batch_again_when_the_answer_was_lost(client: Any) -> None:
    away = redis.asyncio.Redis(host="127.0.0.1", port=9, socket_connect_timeout=0.2)
    refusals = Refusals(away)
    refusals.count(**WHO, code="no_capacity")
    with pytest.raises(redis.RedisError):
        await refusals.tell()
    refusals.count(**WHO, code="no_capacity")  # the next batch's
    refusals._redis = redis.asyncio.Redis.from_url(settings.REDIS_URL)
    told = refusals._telling
    await refusals.tell()
    refusals._telling = told  # it was told, and the process does not know
    await refusals.tell()
    await refusals.tell()
    await refusals._redis.aclose()
    assert client.scard(BATCHES) == 2
    assert sum(int(n) for name in client.smembers(BATCHES) for n in client.hvals(PREFIX + name.decode())) == 2


async def test_it_bounds_what_waits_while_redis_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MOST", 2)
    refusals = Refusals(redis.asyncio.Redis())
    for code in ("a", "b", "c", "a"):
        refusals.count(**WHO, code=code)
    assert sorted(refusals._counts.values()) == [1, 2]


def test_it_carries_each_batch_once(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now = timezone.now()
    batch(client, "one", now, 2)
    batch(client, "two", now, 3)
    assert draining.carry(client) == 5
    assert client.keys("hr:refused*") == []
    batch(client, "one", now, 2)  # told again by a process that had no answer
    assert draining.carry(client) == 0
    batch(client, "three", now, 4)
    assert draining.carry(client) == 4
    assert counts() == {"budget_exhausted": 9}
    assert draining.carry(client) == 0


def test_what_is_no_count_keeps_no_other_from_being_carried(client: Any, caplog: pytest.LogCaptureFixture) -> None:
    now = timezone.now()
    for name, years in (("ahead", 3), ("behind", -30), ("ten", 10)):  # of processes whose clocks have jumped
        batch(client, name, now + timedelta(days=365 * years), 2)
    batch(client, "good", now, 3)
    fields = {
        b"acme web ABCDEFGHIJKL code 99999999999999999999": 1,
        b"acme web ABCDEFGHIJKL code -1": 1,
        b"acme w\x00b ABCDEFGHIJKL code 0": 1,
        b"acme w\xffb ABCDEFGHIJKL code 0": 1,
        b"acme web ABCDEFGHIJKL bad 0": "9" * 40,
        b"acme web ABCDEFGHIJKL bad 900": "\u0663",
        b"acme web ABCDEFGHIJKL fine 900": 4,
        b"nobody": 1,
    }
    client.hset(PREFIX + "fields", mapping=fields)
    client.set(PREFIX + "string", "no batch")
    client.sadd(BATCHES, "fields", "string", b"\xff", b"a\x00b", b"")
    assert draining.carry(client) == 3 * 2 + 3 + 4
    assert client.keys("hr:refused*") == []
    assert sum(RefusedHour.objects.values_list("requests", flat=True)) == 13
    assert caplog.text.count("no count of refusals") == 7
    assert "the batch string of refusals cannot be read" in caplog.text


def test_count_that_only_the_database_refuses_is_left_out(client: Any, caplog: pytest.LogCaptureFixture) -> None:
    most = 2**63 - 1
    batch(client, "one", timezone.now(), 1)
    draining.carry(client)
    RefusedHour.objects.update(requests=most)
    batch(client, "two", timezone.now(), 1)
    batch(client, "three", timezone.now(), 5, project="other")
    assert draining.carry(client) == 5
    assert "a count of refusals is left out: the database refuses it: bigint out of range" in caplog.text
    assert client.scard(BATCHES) == 0


def test_a_worker_that_dies_before_it_deletes_counts_nothing_twice(client: Any) -> None:
    batch(client, "one", timezone.now(), 2)
    with Dying.from_url(settings.REDIS_URL) as worker, pytest.raises(Dead):
        draining.carry(worker)
    assert client.scard(BATCHES) == 1
    assert draining.carry(client) == 0
    assert (counts(), client.scard(BATCHES)) == ({"budget_exhausted": 2}, 0)


class Dead(Exception):
    pass


class Dying(redis.Redis):
    """A worker's client that reads, and is killed at its first transaction."""

    def pipeline(self, transaction: bool = True, shard_hint: Any = None) -> Any:
        if transaction:
            raise Dead
        return super().pipeline(transaction, shard_hint)


def test_a_worker_that_dies_before_it_commits_loses_nothing(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    batch(client, "one", timezone.now(), 2)
    with monkeypatch.context() as broken:
        broken.setattr(
            draining, "_ADD", "SELECT 1 FROM nowhere WHERE %s::text IS NOT NULL" + " OR %s::text IS NOT NULL" * 5
        )
        with pytest.raises(DatabaseError):
            draining.carry(client)
    assert RefusalBatch.objects.count() == 0
    assert draining.carry(client) == 2


def test_hours_are_the_tenants_own(client: Any) -> None:
    make_tenant("acme", time_zone="Asia/Kolkata")  # UTC+5:30
    for minute in (15, 30, 45, 80):
        batch(client, f"at{minute}", datetime(2026, 11, 3, 10, tzinfo=UTC) + timedelta(minutes=minute))
    assert draining.carry(client) == 4
    found = RefusedHour.objects.order_by("hour").values_list("hour", "requests")
    assert [(f"{hour:%H:%M}", number) for hour, number in found] == [("09:30", 1), ("10:30", 3)]


def test_it_passes_over_what_it_cannot_read(client: Any) -> None:
    batch(client, "one", timezone.now(), 2)
    client.hset(PREFIX + "one", "nonsense", 7)
    client.sadd(BATCHES, "gone")
    assert draining.carry(client) == 2
    assert client.scard(BATCHES) == 0


def test_it_keeps_hours_as_long_as_records(client: Any) -> None:
    now = datetime(2026, 11, 30, 12, tzinfo=UTC)
    for month in (8, 9, 11):
        batch(client, f"m{month}", datetime(2026, month, 3, tzinfo=UTC))
    draining.carry(client)
    assert expiry.forget_old(0, now) == 0
    assert expiry.forget_old(2, now) == 1
    assert expiry.forget_old(2, now) == 0
    assert RefusedHour.objects.count() == 2
    RefusalBatch.objects.update(at=now - timedelta(days=30))
    expiry.forget_old(0, now)
    assert RefusalBatch.objects.count() == 0
