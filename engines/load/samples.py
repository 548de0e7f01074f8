"""Samples in Postgres: written each ten seconds, in daily partitions (UTC), dropped after 30 days.

Days are the database's own, and samples carry Redis's time: where the two are days apart there is no partition.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
from django.db import connection, transaction

from engines.good_rows import write_good
from engines.load.figures import Load

PERIOD = 10
KEPT_DAYS = 30
DAYS_AHEAD = 2


class Sample(msgspec.Struct, frozen=True):
    at: datetime
    pool: str
    replica: str
    up: bool
    state: str
    hour_cost: Decimal
    currency: str
    load: Load | None


_FIGURES = ("running", "waiting", "waiting_tokens", "kv_used", "prefix_hit_rate", "retractions",
            "output_tokens_per_second")  # fmt: skip
_COLUMNS = ("at", "pool", "replica", "up", "state", "hour_cost", "currency", *_FIGURES)
_INSERT = (
    f"INSERT INTO engines_replicasample ({', '.join(_COLUMNS)}) VALUES ({', '.join(['%s'] * len(_COLUMNS))})"
    " ON CONFLICT DO NOTHING"
)


def write(samples: Iterable[Sample]) -> list[tuple[Sample, str]]:
    """Add `samples`; those that are there stay as they are. Those that cannot be, with the reason: no day's partition,
    or a figure beyond its column. May be repeated, and run by two collectors at once.
    """
    samples = list(samples)
    days = _days({_day(sample) for sample in samples})
    refused = [(each, f"no partition for {_day(each)}") for each in samples if _day(each) not in days]
    _, bad = write_good([each for each in samples if _day(each) in days], _insert)
    return refused + bad


@transaction.atomic
def _insert(samples: Sequence[Sample]) -> int:
    rows: list[list[Any]] = [
        [s.at, s.pool, s.replica, s.up, s.state, s.hour_cost, s.currency]
        + [getattr(s.load, name) if s.load else None for name in _FIGURES]
        for s in samples
    ]
    with connection.cursor() as cursor:
        cursor.executemany(_INSERT, rows)
    return len(rows)


def _day(sample: Sample) -> date:
    return sample.at.astimezone(UTC).date()


def _days(needed: set[date]) -> set[date]:
    """The days that have a partition; the present ones are made where any of `needed` has none: a clock has jumped."""
    days = _existing_days()
    if needed <= days:
        return days
    keep_partitions()
    return _existing_days()


def _existing_days() -> set[date]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT to_date(right(inhrelid::regclass::text, 8), 'YYYYMMDD') FROM pg_inherits"
            " WHERE inhparent = 'engines_replicasample'::regclass"
        )
        return {day for (day,) in cursor.fetchall()}


def keep_partitions(now: datetime | None = None) -> None:
    """Make the partitions of yesterday to DAYS_AHEAD, and drop those of over KEPT_DAYS ago. May be repeated.

    now: the database's, if not given: it drops by its own clock only.
    """
    with connection.cursor() as cursor:
        if now is None:
            cursor.execute("SELECT now()")
            (now,) = cursor.fetchone()
        today = now.astimezone(UTC).date()
        for distance in range(-1, DAYS_AHEAD + 1):
            cursor.execute("SELECT headrace_sample_partition(%s)", [today + timedelta(days=distance)])
        cursor.execute("SELECT headrace_sample_drop(%s)", [today - timedelta(days=KEPT_DAYS)])


def slot(milliseconds: int) -> datetime:
    """The ten seconds that a moment belongs to, so that two collectors write the same row."""
    return datetime.fromtimestamp(milliseconds // (PERIOD * 1000) * PERIOD, UTC)
