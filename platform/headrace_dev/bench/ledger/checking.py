"""The nightly check as the worker runs it, on a ledger that grows from one whole month before the running one to 13."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import redis
from django.conf import settings
from django.db import connections
from django.utils import timezone

from billing import rebuilding
from billing.invoicing.closing import close_all
from billing.ledger import BUCKET, SUMS, hours_of
from billing.ledger_check import nightly, report
from billing.models import LedgerCheckRun, MonthChange
from billing.partitions import month_of, month_span, shift
from headrace_dev.bench.benchmark import BenchmarkFailed, Say, Target
from headrace_dev.bench.ledger.part import Found, row
from headrace_dev.bench.ledger.seeding.seeding import OWNER

MONTHS = (1, 6, 13)
MOST_RATIO = 1.25
_NIGHTS = 5
# The same requests so much earlier, with ids of their own moment (UUIDv7: 48 bits of milliseconds first).
_COPY = """
INSERT INTO billing_usagerecord
SELECT (r.copy).* FROM (
    SELECT jsonb_populate_record(s, jsonb_build_object(
        'request_id', lpad(to_hex((extract(epoch FROM s.admitted_at - %(back)s) * 1000)::bigint), 12, '0')
                      || substr(translate(s.request_id::text, '-', ''), 13),
        'admitted_at', s.admitted_at - %(back)s, 'finished_at', s.finished_at - %(back)s)) AS copy
    FROM billing_usagerecord AS s WHERE s.admitted_at >= %(start)s AND s.admitted_at < %(end)s
      AND s.admitted_at - %(back)s < %(before)s
) AS r
"""
_SUM = f"""
INSERT INTO billing_usagehour ({", ".join([*BUCKET, *SUMS])})
SELECT {", ".join([*BUCKET, *SUMS])} FROM ({hours_of("billing_usagerecord")}) AS summed
"""
_EARLIER_PRICES = """
ALTER TABLE billing_price DISABLE TRIGGER USER;
UPDATE billing_price SET effective_from = effective_from - interval '3 years';
ALTER TABLE billing_price ENABLE TRIGGER USER;
"""


def measure(tenants: int, say: Say) -> Found:
    """Raises BenchmarkFailed where the books do not agree, or a night reads more than two months."""
    found, nights = Found(), {}
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        there = 1
        _execute(_EARLIER_PRICES)
        for months in MONTHS:
            records = _grow(there, months)
            there = months
            nights[months], whole = _night(client, months), _seconds(lambda: _whole(client))
            say(f"{months} months, {records:,} records: a night {nights[months]:.2f} s, all {whole:.2f} s")
            found.rows.append(row(f"a night's check, {months} months", count=records, seconds=nights[months]))
            found.rows.append(row(f"ledger check --all, {months} months", count=records, seconds=whole))
    for months in MONTHS[1:]:
        ratio = nights[months] / nights[MONTHS[0]]
        found.targets.append(Target(f"times as long at {months} months as at {MONTHS[0]}", ratio, MOST_RATIO))
    found.notes.append(
        f"ledger-check: the fastest of {_NIGHTS} nights, each of which read the running month and one more."
    )
    return found


def _grow(there: int, months: int) -> int:
    """Add months before those that are there, as the last one was, and drafts; how many records there are."""
    this = month_of(datetime.now(UTC))
    start, end = month_span(shift(this, -1))
    for distance in range(there + 1, months + 1):
        first, before = month_span(shift(this, -distance))
        _execute("SELECT headrace_usage_partition(%(month)s)", {"month": first.date()})
        _execute(_COPY, {"back": start - first, "start": start, "end": end, "before": before})
    _execute("TRUNCATE billing_usagehour")
    _execute(_SUM)
    rebuilding.days()
    rebuilding.target_hours()
    if failed := close_all().failed:
        raise BenchmarkFailed(f"not every tenant was closed: {failed[:3]}")
    _execute("VACUUM (ANALYZE) billing_usagerecord, billing_usagehour, billing_usageday, billing_targethour")
    with connections[OWNER].cursor() as cursor:
        cursor.execute("SELECT count(*) FROM billing_usagerecord")
        (count,) = cursor.fetchone()
    return int(count)


def _night(client: "redis.Redis", months: int) -> float:
    """The fastest of some nights, once every month was read and nothing changes. Each reads the running month and one
    of the whole ones; nights that read the hours which began before the first of these are passed over."""
    first = f"{shift(month_of(datetime.now(UTC)), -months):%Y-%m}"
    for _ in range(2):
        _check(client)
        MonthChange.objects.update(at=timezone.now() - timedelta(hours=3))
    _check(client)
    times: list[float] = []
    while len(times) < _NIGHTS:
        seconds = _seconds(lambda: _check(client))
        read = LedgerCheckRun.objects.latest("at").report["parameters"]["months"]
        if len(read) != 2:
            raise BenchmarkFailed(f"a night read {', '.join(read)}")
        times += [seconds] if read[0] >= first else []
    return min(times)


def _check(client: "redis.Redis") -> None:
    run = nightly.check(client, spool=_spool())
    if run.differences:
        raise BenchmarkFailed(f"the books differ: {[one for one in run.report['checks'] if one['total']]}")


def _whole(client: "redis.Redis") -> None:
    if not report.check(client, spool=_spool()).is_clean:
        raise BenchmarkFailed("the books differ")


def _spool() -> Path:
    return Path(settings.HOME) / "spool"


def _seconds(work: Callable[[], None]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def _execute(sql: str, values: dict[str, Any] | None = None) -> None:
    with connections[OWNER].cursor() as cursor:
        cursor.execute(sql, values)
