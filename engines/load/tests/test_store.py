"""The collector's work in the database: neither a bad row nor a clock that jumps stops it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TypeVar

import pytest
from django.db import connection

from engines.load.figures import Load
from engines.load.hours import roll_up_since_last
from engines.load.samples import Sample, write
from engines.load.store import Store
from engines.models import PoolHour, ReplicaSample

T = TypeVar("T")

NOW = datetime.now(UTC).replace(second=0, microsecond=0)
YEARS = timedelta(days=3 * 365)


def sample(at: datetime, replica: str = "p/r1", **changes: object) -> Sample:
    fields = {
        "at": at, "pool": "p", "replica": replica, "up": True, "state": "ready", "hour_cost": Decimal("2.5"),
        "currency": "USD", "load": None,
    }  # fmt: skip
    return Sample(**(fields | changes))  # type: ignore[arg-type]


@pytest.fixture
async def store(transactional_db: None) -> AsyncIterator[Store]:
    store = Store()
    yield store
    await store.close()


async def in_database(work: Callable[[], T]) -> T:
    """Run `work` in a thread that leaves no connection behind."""

    def run() -> T:
        try:
            return work()
        finally:
            connection.close()

    return await asyncio.to_thread(run)


def as_owner(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET ROLE headrace_owner")
        cursor.execute(statement)
        cursor.execute("SET ROLE headrace_system")


def written() -> list[str]:
    return sorted(ReplicaSample.objects.values_list("replica", flat=True))


@pytest.mark.parametrize("jump", [YEARS, -YEARS])
async def test_samples_of_a_clock_that_jumped_keep_no_other_from_being_written(
    store: Store, jump: timedelta, caplog: pytest.LogCaptureFixture
) -> None:
    store.add([sample(NOW, "p/before"), sample(NOW + jump), sample(NOW + jump, "p/r2"), sample(NOW, "p/after")])
    await store.once()
    store.add([sample(NOW, "p/later"), sample(NOW + jump, "p/r2")])
    await store.once()
    assert await in_database(written) == ["p/after", "p/before", "p/later"]
    told = [record.getMessage() for record in caplog.records if record.name == "headrace.load"]
    assert len(told) == 1  # not again of the same
    assert told[0].startswith(
        f"2 of 4 samples are set aside, the first: no partition for {(NOW + jump).date()}, Sample("
    )
    assert "replica='p/r1'" in told[0]


async def test_figure_that_no_column_holds_sets_its_sample_aside_alone(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    lies = [Load(running=2**31), Load(waiting=-(2**40)), Load(waiting_tokens=2**70), Load(retractions=10**30)]
    store.add([sample(NOW, f"p/bad{number}", load=load) for number, load in enumerate(lies)])
    store.add([sample(NOW, "p/good"), sample(NOW, "p/\0"), sample(NOW, "p/usd", currency="usd")])
    store.add([sample(NOW, "p/last", load=Load(running=1))])
    await store.once()
    assert await in_database(written) == ["p/good", "p/last"]
    assert "6 of 8 samples are set aside, the first: the database refuses it: integer out of range" in caplog.text
    assert "does not answer" not in caplog.text


async def test_task_that_fails_ends_no_other(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    await in_database(lambda: as_owner("ALTER FUNCTION headrace_sample_drop(date) RENAME TO lost"))
    try:
        store.add([sample(NOW)])
        for _ in range(3):
            await store.once()
    finally:
        await in_database(lambda: as_owner("ALTER FUNCTION lost(date) RENAME TO headrace_sample_drop"))
    assert await in_database(written) == ["p/r1"]
    assert await in_database(PoolHour.objects.count)
    told = [record.getMessage() for record in caplog.records if record.name == "headrace.load"]
    assert told == ["the days of samples are not made"]
    assert "ProgrammingError" in caplog.text


@pytest.mark.django_db
def test_present_day_has_a_partition_as_soon_as_a_sample_needs_it() -> None:
    as_owner(f"DROP TABLE engines_replicasample_{NOW:%Y%m%d}")
    assert write([sample(NOW)]) == []
    assert written() == ["p/r1"]


@pytest.mark.django_db
def test_hour_to_come_keeps_none_of_the_present_from_being_made() -> None:
    hour = NOW.replace(minute=0)
    for at in (hour + YEARS, hour - YEARS):
        PoolHour.objects.create(
            pool="p", hour=at, currency="USD", cost=1, up_seconds=1, covered_seconds=1, first_at=at, last_at=at
        )
    write([sample(hour)])
    assert roll_up_since_last(hour + timedelta(minutes=5)) > 0
    assert PoolHour.objects.filter(hour=hour).count() == 1
