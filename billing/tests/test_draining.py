"""From the stream to the ledger: each record once, nothing bad in the way."""

import json
import uuid
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import redis
from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from billing import drain
from billing.models import DeadLetter, Status, UsageCorrection, UsageHour, UsageRecord
from billing.tests.stream import append, connect, is_empty, usage_event
from tenants.api_keys import issue_key
from tenants.models import Project, Tenant

pytestmark = pytest.mark.django_db


def drained(client: "redis.Redis") -> drain.Drained:
    return drain.drain_once(client, abandoned_ms=0)


def test_it_writes_a_record_with_every_field_and_leaves_the_stream_empty() -> None:
    event = usage_event()
    with connect() as client:
        append(client, event)
        assert drained(client) == drain.Drained(read=1, written=1)
        assert is_empty(client)
    record = UsageRecord.objects.of("acme").get()
    for name, value in event.items():
        if name not in {"v", "request_id", "cost", "admitted_at", "finished_at"}:
            assert getattr(record, name) == value, name
    assert record.request_id == uuid.UUID(event["request_id"])
    assert record.cost == Decimal("0.000123456789")
    assert record.admitted_at == datetime.fromisoformat(event["admitted_at"])


def test_it_starts_where_there_is_no_stream_yet() -> None:
    with connect() as client:
        assert drained(client) == drain.Drained()
        append(client, usage_event())
        assert drained(client).written == 1


def test_it_goes_on_after_the_stream_and_its_group_were_lost() -> None:
    with connect() as client:
        append(client, usage_event())
        drained(client)
        client.flushall()
        append(client, usage_event())
        assert drained(client).written == 1


def test_it_takes_an_event_once_however_often_it_is_delivered() -> None:
    event = usage_event()
    with connect() as client:
        append(client, event, event)
        assert drained(client) == drain.Drained(read=2, written=1, known=1)
        append(client, event | {"input_tokens": 999})
        assert drained(client) == drain.Drained(read=1, known=1)
    assert UsageRecord.objects.get().input_tokens == 100
    assert UsageHour.objects.get().requests == 1


def test_it_reads_again_what_a_drain_took_and_never_acknowledged() -> None:
    with connect() as client:
        append(client, usage_event())
        drained(client)
        append(client, usage_event())
        client.xreadgroup(drain.GROUP, drain.CONSUMER, {"hr:usage": ">"})
        assert drain.drain_once(client) == drain.Drained()  # it may be at work yet
        assert drained(client).written == 1


def test_it_writes_a_batch_and_leaves_the_rest_for_the_next() -> None:
    with connect() as client:
        append(client, *(usage_event() for _ in range(25)))
        assert drain.drain_once(client, most=10).written == 10
        assert drain.drain_all(client) == 15
        assert is_empty(client)


def test_it_loses_nothing_when_redis_goes_away_before_the_acknowledgement() -> None:
    class Dying(redis.Redis):
        def pipeline(self, *_: object, **__: object) -> "redis.client.Pipeline":
            raise redis.ConnectionError("gone")

    with connect() as client, Dying.from_url(settings.REDIS_URL) as dying:
        append(client, usage_event(), b"bad")
        with pytest.raises(redis.ConnectionError):
            drain.drain_once(dying)
        assert UsageRecord.objects.count() == 1
        assert drained(client) == drain.Drained(read=2, known=1, dead=1)
        assert is_empty(client)
    assert UsageHour.objects.get().requests == 1
    assert DeadLetter.objects.count() == 1


def test_it_shows_corrections_apart_and_adds_them_to_the_hour() -> None:
    event = usage_event(status="reaped")
    late = event | {"part": 1, "input_tokens": 5, "cached_input_tokens": 0, "output_tokens": 3, "reasoning_tokens": 0}
    late |= {"cost": "0.5", "cost_nano": 500_000_000, "status": "ok"}
    with connect() as client:
        append(client, late, event, late)
        assert drained(client) == drain.Drained(read=3, written=2, known=1)
    assert UsageRecord.objects.get().output_tokens == 7
    correction = UsageCorrection.objects.of("acme").get()
    assert (correction.id, correction.output_tokens) == (f"{event['request_id']}/1", 3)
    hour = UsageHour.objects.get()
    assert (hour.requests, hour.errors, hour.corrections) == (1, 1, 1)
    assert (hour.input_tokens, hour.output_tokens, hour.cost) == (105, 10, Decimal("0.500123456789"))


def test_it_counts_how_requests_ended() -> None:
    free = {"cost": None, "cost_nano": None}
    with connect() as client:
        append(
            client,
            *(usage_event(status=status) for status in Status.values),
            usage_event(usage_source="estimated", **free),
        )
        drained(client)
    hour = UsageHour.objects.get()
    assert (hour.requests, hour.errors, hour.cancelled, hour.abandoned, hour.estimated, hour.unpriced) == (
        7,
        3,
        1,
        1,
        1,
        1,
    )
    assert hour.cost == 6 * Decimal("0.000123456789")


def test_it_keeps_tiny_costs_exactly() -> None:
    cost = Decimal("0.00000015")  # 3 tokens at 0.05 a million
    with connect() as client:
        append(client, *(usage_event(cost="0.00000015", cost_nano=150) for _ in range(1000)))
        drained(client)
    assert UsageHour.objects.get().cost == 1000 * cost


def test_it_sets_bad_events_aside_and_writes_the_rest() -> None:
    good = [usage_event(), usage_event()]
    bad = [b"{", json.dumps(usage_event(labels={"user": "a\x00b"})).encode(), b"\xff\x00\x01", b"x" * (2**20 + 5)]
    old = usage_event(datetime(2020, 1, 1, tzinfo=UTC))
    with connect() as client:
        append(client, good[0], *bad, old, good[1])
        client.xadd("hr:usage", {"other": "field"})
        assert drained(client) == drain.Drained(read=8, written=2, dead=6)
        assert is_empty(client)
    reasons = list(DeadLetter.objects.order_by("id").values_list("reason", flat=True))
    assert sum("not a usage event" in reason for reason in reasons) == 3
    assert reasons[-1] == "no partition for 2020-01"
    assert "hold a NUL" in " ".join(reasons)
    assert "\\xff\\x00\x01" in DeadLetter.objects.values_list("event", flat=True)


def test_it_finds_the_row_that_only_the_database_refuses() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET ROLE headrace_owner")
        cursor.execute("ALTER TABLE billing_usagerecord ADD CONSTRAINT no_seven CHECK (output_tokens <> 77)")
        cursor.execute("SET ROLE headrace_system")
    events = [usage_event(output_tokens=77 if number in {3, 11} else 7) for number in range(20)]
    with connect() as client:
        append(client, *events)
        assert drained(client) == drain.Drained(read=20, written=18, dead=2)
        assert is_empty(client)
    assert all("no_seven" in letter.reason for letter in DeadLetter.objects.all())
    assert UsageHour.objects.get().requests == 18


def test_no_event_keeps_a_batch_from_the_ledger() -> None:
    nested = json.dumps(usage_event()).replace('"v"', '"x":' + "[" * 5000 + "]" * 5000 + ',"v"', 1).encode()
    texts: list[Any] = [
        usage_event(cost="9" * 24, cost_nano=2**63 - 1),
        usage_event(cost="9" * 24, cost_nano=9 * 10**18),
        usage_event(finished_at="9999-12-31T23:59:59-23:59"),
        usage_event(finished_at="0001-01-01T00:00:00+23:59"),
        usage_event(queue_ms=1e10, ttft_ms=1e-320),
        usage_event(output_tokens=10**12, input_tokens=10**12),
        usage_event(labels={"a": "\ud800"}),
        usage_event(labels={"a" * 20000: "b"}),
        usage_event(tenant="\ud800"),
        usage_event(rates=["1e999999", "NaN", "-1"]),
        usage_event(rates=["0." + "1" * 400, "1", "1"]),
        usage_event(datetime(1970, 1, 1, tzinfo=UTC)),
        usage_event(datetime(2285, 1, 1, tzinfo=UTC)),
        nested,
        b"[" * 100_000,
    ]
    for text in texts:
        with connect() as client:
            append(client, usage_event(), text, usage_event())
            assert drained(client).read == 3
            assert is_empty(client)
    assert UsageRecord.objects.filter(input_tokens=100).count() >= 2 * len(texts)


def test_it_takes_an_event_far_ahead_only_where_there_is_a_partition() -> None:
    with connect() as client:
        append(client, usage_event(timezone.now() + timedelta(days=400)))
        assert drained(client).dead == 1


def test_it_makes_a_missing_partition_of_these_months_itself() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET ROLE headrace_owner")
        cursor.execute(f"DROP TABLE billing_usagerecord_{timezone.now():%Y%m}")
        cursor.execute("SET ROLE headrace_system")
    with connect() as client:
        append(client, usage_event())
        assert drained(client).written == 1


def test_it_writes_when_a_key_was_last_used_and_tells_nobody_of_it() -> None:
    project = Project.objects.create(tenant=Tenant.objects.create(slug="acme", name="Acme"), slug="web", name="Web")
    key = issue_key(project=project, name="ci").key
    start = timezone.now().replace(microsecond=0)
    with connection.cursor() as cursor:
        cursor.execute("SELECT max(id) FROM config_change")
        told = cursor.fetchone()
    with connect() as client:
        for seconds in (5, 0, 30, 90):
            append(client, usage_event(start + timedelta(seconds=seconds), key=key.public_id))
            drained(client)
            key.refresh_from_db()
            expected = {5: 5, 0: 5, 30: 5, 90: 90}[seconds]  # to the minute, never back
            assert key.last_used_at == start + timedelta(seconds=expected, milliseconds=900)
    with connection.cursor() as cursor:
        cursor.execute("SELECT max(id) FROM config_change")
        assert cursor.fetchone() == told


def test_it_never_lets_a_record_change() -> None:
    with connect() as client:
        append(client, usage_event())
        drained(client)
    for write in (lambda: UsageRecord.objects.update(output_tokens=1), lambda: UsageRecord.objects.all().delete()):
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            write()
