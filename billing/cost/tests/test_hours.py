"""The database's sums against hours added up one by one: the same reports, cell by cell."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from billing.cost import hosted
from billing.cost.report import report, report_of
from billing.cost.report_query import UNITS, Asked, default_span
from billing.cost.tests import messy
from billing.cost.tests.hour_by_hour import Rows

pytestmark = pytest.mark.django_db

ZONES = ("UTC", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe")


def questions() -> Iterator[Asked]:
    """By each unit and in each zone: whole spans, ones that begin and end within an hour, and narrowed ones."""
    own = hosted.given(Decimal("0.3"), Decimal("1.1"), "USD")
    for zone in map(ZoneInfo, ZONES):
        for by in UNITS:
            start, end = default_span(by, messy.NOW, zone)
            yield Asked(start, end, by, zone)
            yield Asked(start + timedelta(hours=7, minutes=30), end - timedelta(days=1, minutes=17), by, zone)
            yield Asked(start, end, by, zone, pool="small", currency="USD")
            yield Asked(start, end, by, zone, model="code", currency="EUR", hosted=own)
    for pool in (*messy.POOLS, "idle", "never"):
        for by in UNITS:
            yield Asked(messy.START, messy.NOW, by, pool=pool)
    clocks_change = datetime(2026, 3, 28, 12, tzinfo=UTC)
    yield Asked(clocks_change, clocks_change + timedelta(days=2), "hour", ZoneInfo("Europe/Berlin"))
    yield Asked(messy.NOW, messy.NOW + timedelta(days=3), "day")
    yield Asked(messy.START - timedelta(days=3), messy.START, "day")


def test_it_reports_what_the_hours_say_one_by_one() -> None:
    messy.make()
    rows = Rows()
    lines = 0
    for asked in questions():
        found, wanted = report(asked, now=messy.NOW), report_of(rows.worked(asked, messy.NOW), asked, now=messy.NOW)
        assert found.best == wanted.best, asked
        for line, other in zip(found.lines, wanted.lines, strict=True):
            assert line == other, asked
        lines += len(found.lines)
    assert lines > 3000
