"""Hours made of samples: what was up, what it cost, and what nobody saw."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import ProgrammingError, connection, transaction

from engines.load import samples
from engines.load.figures import Load
from engines.load.hours import roll_up, roll_up_since_last
from engines.load.samples import Sample, keep_partitions, write
from engines.models import PoolHour, ReplicaSample

pytestmark = pytest.mark.django_db

HOUR = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)


def sample(second: float, replica: str = "p/r1", **changes: object) -> Sample:
    fields = {
        "at": HOUR + timedelta(seconds=second), "pool": "p", "replica": replica, "up": True, "state": "ready",
        "hour_cost": Decimal("2.5"), "currency": "USD", "load": None,
    }  # fmt: skip
    return Sample(**(fields | changes))  # type: ignore[arg-type]


def hour() -> PoolHour:
    roll_up(HOUR)
    return PoolHour.objects.get(hour=HOUR)


def test_it_costs_what_was_up_for_as_long_as_it_was() -> None:
    write(sample(second) for second in range(-10, 3610, 10))
    write(sample(second, "p/r2", up=second < 1800) for second in range(0, 3600, 10))
    found = hour()
    assert (found.up_seconds, found.covered_seconds) == (5400, 3600)
    assert found.cost == Decimal("3.75")
    roll_up(HOUR)
    assert PoolHour.objects.count() == 1


def test_it_takes_a_gap_for_a_gap() -> None:
    write(sample(second) for second in [0, 10, 20, 50, 60, 100, 3590])
    found = hour()
    # 0-70 (30 s between two is no gap), 100-110, 3590-3600.
    assert found.covered_seconds == found.up_seconds == 90
    assert found.cost == (Decimal(90) * Decimal("2.5") / 3600).quantize(Decimal("1e-12"))
    assert (found.first_at, found.last_at) == (HOUR, HOUR + timedelta(seconds=3590))


def test_it_parts_what_spans_two_hours_and_keeps_currencies_apart() -> None:
    write([sample(-5), sample(5), sample(15, currency="EUR"), sample(25, currency="EUR")])
    roll_up(HOUR)
    found = {row.currency: row.up_seconds for row in PoolHour.objects.filter(hour=HOUR)}
    assert found == {"USD": 15, "EUR": 20}


def test_it_catches_up_from_the_hour_before_the_last_it_made() -> None:
    now = HOUR + timedelta(minutes=10)
    assert roll_up_since_last(now) == 0
    write([sample(-7200), sample(0)])
    assert roll_up_since_last(now) >= 3
    assert roll_up_since_last(now) == 2
    assert set(PoolHour.objects.values_list("hour", flat=True)) == {HOUR, HOUR - timedelta(hours=2)}


def test_it_writes_a_sample_once() -> None:
    load = Load(running=3, waiting=1, kv_used=0.25, retractions=2)
    write([sample(0, load=load)])
    write([sample(0, up=False), sample(10)])
    first, second = ReplicaSample.objects.order_by("at")
    assert (first.up, first.running, first.kv_used, first.retractions, second.running) == (True, 3, 0.25, 2, None)


def test_it_drops_whole_days_after_thirty_and_no_younger_ones() -> None:
    def days() -> set[str]:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT right(inhrelid::regclass::text, 8) FROM pg_inherits"
                " WHERE inhparent = 'engines_replicasample'::regclass"
            )
            return {row[0] for row in cursor.fetchall()}

    now = datetime.now(UTC)
    for age in (31, 30):
        with connection.cursor() as cursor:
            cursor.execute("SELECT headrace_sample_partition(%s)", [(now - timedelta(days=age)).date()])
    keep_partitions(now)
    kept = days()
    assert f"{now - timedelta(days=31):%Y%m%d}" not in kept
    assert {f"{now + timedelta(days=days):%Y%m%d}" for days in (-30, -1, 0, 1, 2)} <= kept
    with connection.cursor() as cursor, pytest.raises(Exception, match="for a week"), transaction.atomic():
        cursor.execute("SELECT headrace_sample_drop(current_date)")


def test_it_puts_a_moment_into_its_ten_seconds() -> None:
    assert samples.slot(1_790_000_019_999) == datetime.fromtimestamp(1_790_000_010, UTC)


@pytest.mark.parametrize("table", ["engines_replicasample", "engines_poolhour"])
def test_it_shows_the_fleet_to_no_tenant(table: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL ROLE headrace_app")
        with pytest.raises(ProgrammingError), transaction.atomic():
            cursor.execute(f"SELECT * FROM {table}")
