"""Samples in Postgres: written each ten seconds, in daily partitions (UTC), dropped after 30 days."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
from django.db import connection

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


def write(samples: Iterable[Sample]) -> None:
    """Add `samples`; those that are there stay as they are. May be repeated, and run by two collectors at once."""
    rows: list[list[Any]] = [
        [s.at, s.pool, s.replica, s.up, s.state, s.hour_cost, s.currency]
        + [getattr(s.load, name) if s.load else None for name in _FIGURES]
        for s in samples
    ]
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(_INSERT, rows)


def keep_partitions(now: datetime | None = None) -> None:
    """Make the partitions of yesterday to DAYS_AHEAD, and drop those of over KEPT_DAYS ago. May be repeated."""
    today = (now or datetime.now(UTC)).astimezone(UTC).date()
    with connection.cursor() as cursor:
        for distance in range(-1, DAYS_AHEAD + 1):
            cursor.execute("SELECT headrace_sample_partition(%s)", [today + timedelta(days=distance)])
        cursor.execute("SELECT headrace_sample_drop(%s)", [today - timedelta(days=KEPT_DAYS)])


def slot(milliseconds: int) -> datetime:
    """The ten seconds that a moment belongs to, so that two collectors write the same row."""
    return datetime.fromtimestamp(milliseconds // (PERIOD * 1000) * PERIOD, UTC)
