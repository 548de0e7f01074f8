"""Pages' days and months are those of budgets and invoices; no span is compared with a part of itself."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.periods import DAY, Calendar, ZoneChange, always_in, month_start
from headrace.portal.period import CHOICES, period

ZONES = [
    "UTC", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe", "America/Havana", "Africa/Cairo", "Europe/Berlin",
    "America/New_York", "Pacific/Kiritimati", "Pacific/Apia", "Pacific/Pago_Pago",
]  # fmt: skip
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_WHOLE = ("yesterday", "last-month")


@st.composite
def calendars(draw: st.DrawFn) -> Calendar:
    names = draw(st.lists(st.sampled_from(ZONES), min_size=1, max_size=3))
    changes = [ZoneChange(_LONG_AGO.date(), _LONG_AGO, names[0])]
    for number, name in enumerate(names[1:]):
        month = date(2026, 4 + number, 1)
        changes.append(ZoneChange(month, month_start(month, changes[-1].time_zone), name))
    return Calendar(changes)


moments = st.datetimes(datetime(2026, 1, 1), datetime(2027, 2, 1), timezones=st.just(UTC))


@given(calendar=calendars(), now=moments)
def test_its_months_and_days_are_those_of_invoices_and_budgets(calendar: Calendar, now: datetime) -> None:
    month, last = period("month", calendar, now), period("last-month", calendar, now)
    assert (month.start, month.end) == (calendar.at(now).start, now)
    assert last.end == month.start
    invoiced = calendar.at(last.start)
    assert (last.start, last.end) == (invoiced.start, invoiced.end)
    today, yesterday = period("today", calendar, now), period("yesterday", calendar, now)
    assert (today.start, today.end) == (calendar.window_at(DAY, now).start, now)
    assert (yesterday.start, yesterday.end) == (calendar.window_at(DAY, yesterday.start).start, today.start)
    assert period("7d", calendar, now).start <= yesterday.start


@given(calendar=calendars(), now=moments, name=st.sampled_from(sorted(CHOICES)))
def test_it_is_never_compared_with_a_part_of_itself(calendar: Calendar, now: datetime, name: str) -> None:
    span = period(name, calendar, now)
    assert span.before <= span.before_end <= span.start <= span.end <= now
    assert span.before_end - span.before <= max(span.end - span.start, timedelta(days=33) * (name in _WHOLE))
    if name in _WHOLE:
        assert span.before_end == span.start


@pytest.mark.parametrize(
    ("now", "name", "before_end"),
    [
        ("2026-04-15", "last-month", "2026-03-01"),  # March is longer than February
        ("2026-03-30T12:00", "month", "2026-03-01"),
        ("2026-03-15T12:00", "month", "2026-02-15T12:00"),
        ("2026-03-15", "last-month", "2026-02-01"),
    ],
)
def test_the_month_before_a_longer_one_ends_where_that_begins(now: str, name: str, before_end: str) -> None:
    span = period(name, always_in("UTC"), datetime.fromisoformat(now).replace(tzinfo=UTC))
    assert span.before_end == datetime.fromisoformat(before_end).replace(tzinfo=UTC)
