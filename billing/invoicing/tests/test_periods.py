"""Periods are calendar months in the tenant's time zone. They tile time, whatever the clocks and the operators do."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from billing.invoicing.tests.making import months, use, utc
from billing.models import TenantZone
from billing.partitions import shift
from billing.periods import Calendar, Period, ZoneChange, calendar_of, month_start
from tenants.models import Tenant
from tenants.tests.cast import make_tenant, sql

ZONES = [
    "UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe",
    "Pacific/Auckland", "Pacific/Kiritimati", "Pacific/Pago_Pago", "America/Havana", "America/Asuncion", "Asia/Beirut",
    "Pacific/Chatham", "America/St_Johns",
]  # fmt: skip
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


def calendar(time_zone: str) -> Calendar:
    return Calendar([ZoneChange(BEGINNING.date(), BEGINNING, time_zone)])


@pytest.mark.parametrize(
    ("time_zone", "month", "start", "end"),
    [
        ("Asia/Kolkata", "2026-03-01", "2026-02-28 18:30", "2026-03-31 18:30"),
        ("Asia/Kathmandu", "2026-03-01", "2026-02-28 18:15", "2026-03-31 18:15"),
        ("Australia/Lord_Howe", "2026-04-01", "2026-03-31 13:00", "2026-04-30 13:30"),
        ("Pacific/Auckland", "2026-04-01", "2026-03-31 11:00", "2026-04-30 12:00"),
        ("Pacific/Kiritimati", "2026-01-01", "2025-12-31 10:00", "2026-01-31 10:00"),
        ("Europe/Berlin", "2026-03-01", "2026-02-28 23:00", "2026-03-31 22:00"),
        ("Europe/Berlin", "2028-02-01", "2028-01-31 23:00", "2028-02-29 23:00"),  # a leap day
        ("America/Havana", "2026-11-01", "2026-11-01 04:00", "2026-12-01 05:00"),  # of two midnights the first
        ("America/Asuncion", "2023-10-01", "2023-10-01 04:00", "2023-11-01 03:00"),  # no midnight that day
    ],
)
def test_it_is_the_calendar_month_of_the_zone(time_zone: str, month: str, start: str, end: str) -> None:
    first = date.fromisoformat(month)
    assert calendar(time_zone).period(first) == Period(first, utc(start), utc(end), time_zone)


@st.composite
def calendars(draw: st.DrawFn) -> Calendar:
    """A calendar with changes of the zone, each effective at the end of the period in which somebody made it."""
    changes = [ZoneChange(BEGINNING.date(), BEGINNING, draw(st.sampled_from(ZONES)))]
    month = date(2023, 1, 1)
    for gap, zone in draw(st.lists(st.tuples(st.integers(1, 9), st.sampled_from(ZONES)), max_size=4)):
        month = shift(month, gap)
        changes.append(ZoneChange(month, month_start(month, changes[-1].time_zone), zone))
    return Calendar(changes)


@settings(max_examples=60, deadline=None)
@given(calendars(), st.lists(st.integers(0, 5 * 366 * 24 * 60), max_size=20))
def test_it_tiles_time_without_gap_or_overlap(calendar: Calendar, minutes: list[int]) -> None:
    tiles = [calendar.period(month) for month in months(date(2022, 12, 1), 64)]
    for before, after in pairwise(tiles):
        assert before.end == after.start
        assert timedelta(days=26) < after.end - after.start < timedelta(days=33)
    for minute in minutes:
        moment = datetime(2023, 1, 2, tzinfo=UTC) + timedelta(minutes=minute)
        period = calendar.at(moment)
        assert period.start <= moment < period.end
        assert period == calendar.period(period.month)
        assert calendar.at(period.start) == period
        assert calendar.at(period.end - timedelta(microseconds=1)) == period
    assert list(calendar.ended(tiles[3].start, tiles[9].end)) == tiles[3:10]


@pytest.mark.django_db
def test_it_begins_months_where_the_database_does() -> None:
    for zone in ZONES:
        for month in months(date(2022, 1, 1), 72):
            assert sql("SELECT headrace_month_start(%s, %s)", month, zone) == [(month_start(month, zone),)], (
                zone,
                month,
            )


@pytest.mark.django_db
def test_it_changes_the_zone_from_the_next_period_once_something_was_used() -> None:
    tenant = make_tenant(time_zone="America/New_York")
    Tenant.objects.filter(pk=tenant.pk).update(time_zone="Asia/Kolkata")  # nothing used yet: a slip put right
    assert calendar_of("acme").at(datetime.now(UTC)).time_zone == "Asia/Kolkata"
    use(datetime.now(UTC))
    for zone in ("America/New_York", "Europe/Berlin"):  # the last word before the period ends counts
        Tenant.objects.filter(pk=tenant.pk).update(time_zone=zone)
    running = calendar_of("acme").at(datetime.now(UTC))
    following = calendar_of("acme").at(running.end)
    assert (running.time_zone, following.time_zone) == ("Asia/Kolkata", "Europe/Berlin")
    assert running.end == following.start
    assert following.end.astimezone(ZoneInfo("Europe/Berlin")).hour == 0
    assert TenantZone.objects.filter(tenant="acme").count() == 2
    assert sql("SELECT headrace_period_start('acme', %s)", running.end - timedelta(seconds=1)) == [(running.start,)]
    assert sql("SELECT headrace_period_start('acme', %s)", running.end) == [(following.start,)]


@pytest.mark.django_db
def test_it_takes_utc_for_a_tenant_it_does_not_know() -> None:
    assert calendar_of("gone").period(date(2026, 2, 1)).start == utc("2026-02-01")
