"""The whole of it, in order, two months side by side."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connections

from billing import partitions, rebuilding
from billing.models import Invoice, UsageHour, UsageRecord
from headrace_dev.bench.benchmark import BenchmarkFailed, Say
from headrace_dev.bench.ledger.seeding import cast, fleet, hours, loading, mix, offers, records
from headrace_dev.bench.ledger.seeding.size import Size
from tenants.models import Tenant

OWNER = "owner"  # the connection that may create the table to draw from
DEMO = "demo"  # the one tenant of a fresh `make up`
_SETTINGS = ("work_mem = '512MB'", "synchronous_commit = off")
_ANALYSED = (
    "billing_usagerecord", "billing_usagehour", "billing_usageday", "billing_targethour", "tenants_apikey",
    "engines_poolhour",
)  # fmt: skip


@dataclass
class Seeded:
    """How many rows of each kind, and in how many seconds: (what, rows, seconds)."""

    steps: list[tuple[str, int, float]] = field(default_factory=list)


def seed(size: Size, say: Say) -> Seeded:
    """Fill an empty installation. Raises BenchmarkFailed for one that holds anything but its demo."""
    check_empty()
    if size.keys < size.tenants:
        raise BenchmarkFailed("every tenant needs a key")
    partitions.ensure_months(size.end)
    done = Seeded()
    with _step("keys", done, say) as count:
        callers = cast.make(size)
        own_prices = [(tenant.slug, tenant.currency) for tenant in _third(callers)]
        offers.make(size, cast.CURRENCIES, own_prices)
        count(len(callers))
    try:
        _draw_table(callers, size)
        with _step("records", done, say) as count:
            slots = mix.slots_for(len(callers))
            months = _months(size)
            with connections[OWNER].cursor() as cursor, loading.detached(cursor, months):
                count(sum(_side_by_side(months, lambda month: _fill(size, month, slots))))
        with _step("hours", done, say) as count:
            count(sum(_side_by_side(_months(size), lambda month: _roll_up(size, month))))
    finally:
        with connections[OWNER].cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {mix.TABLE}")
    with _step("days", done, say) as count:
        count(rebuilding.days())
    with _step("hours of pools and targets", done, say) as count:
        count(fleet.make(size) + rebuilding.target_hours())
    with _step("statistics", done, say) as count, connections[OWNER].cursor() as cursor:
        for table in _ANALYSED:
            cursor.execute(f"VACUUM (ANALYZE) {table}")
        count(len(_ANALYSED))
    return done


def check_empty() -> None:
    """Raises BenchmarkFailed where anybody's data is: what is seeded cannot be told from it, or taken out again."""
    others = Tenant.objects.exclude(slug=DEMO).exists()
    if others or UsageRecord.objects.exists() or UsageHour.objects.exists() or Invoice.objects.exists():
        raise BenchmarkFailed("the database holds tenants, usage or invoices: only an empty installation is seeded")


def _third(callers: list[cast.Caller]) -> list[Tenant]:
    return list({caller.tenant.slug: caller.tenant for caller in callers}.values())[::3]


@contextmanager
def _step(what: str, done: Seeded, say: Say) -> Iterator[Callable[[int], None]]:
    counted: list[int] = []
    began = time.monotonic()
    yield counted.append
    seconds = time.monotonic() - began
    done.steps.append((what, sum(counted), seconds))
    say(f"seeded {sum(counted):,} {what} in {seconds:.0f} s")


def _months(size: Size) -> list[datetime]:
    last = partitions.month_span(partitions.month_of(size.end))[0]
    return [size.start, last]


def _side_by_side(months: list[datetime], work: Callable[[datetime], int]) -> list[int]:
    def in_thread(month: datetime) -> int:
        try:
            return work(month)
        finally:
            connections[OWNER].close()

    with ThreadPoolExecutor(len(months)) as pool:
        return list(pool.map(in_thread, months))


def _draw_table(callers: list[cast.Caller], size: Size) -> None:
    with connections[OWNER].cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {mix.TABLE}")
        cursor.execute(mix.CREATE)
        with cursor.copy(f"COPY {mix.TABLE} ({', '.join(mix.COLUMNS)}) FROM STDIN") as copy:
            for row in mix.rows(callers, size.start):
                copy.write_row(row)
        cursor.execute(f"ANALYZE {mix.TABLE}")


def _fill(size: Size, month: datetime, slots: int) -> int:
    statement, written = records.INSERT.format(partition=loading.partition_of(month)), 0
    with connections[OWNER].cursor() as cursor:
        _set(cursor)
        for start, end in records.days(size, month):
            if (values := records.values(size, start, end, slots)) is not None:
                cursor.execute(statement, values)
                written += cursor.rowcount
    return written


def _roll_up(size: Size, month: datetime) -> int:
    written = 0
    with connections[OWNER].cursor() as cursor:
        _set(cursor)
        for start, end in records.days(size, month):
            values = {"start": start, "end": end}
            statements = [hours.FIRST, hours.INSERT] if start == size.start else [hours.INSERT]
            for statement in statements:
                cursor.execute(statement, values)
                written += cursor.rowcount
    return written


def _set(cursor: Any) -> None:
    for setting in _SETTINGS:
        cursor.execute(f"SET {setting}")
