"""Windows meet without gap or overlap, whatever clocks do: month ends, leap days, changes to summer time and back."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.periods import PERIODS, Window, Zones, window_at


def window(period: str, zone: str, local: str) -> tuple[str, str]:
    """The window at a local time, as local times with their offsets."""
    found = window_at(period, zone, datetime.fromisoformat(local).replace(tzinfo=ZoneInfo(zone)))
    return tuple(moment.astimezone(ZoneInfo(zone)).isoformat(timespec="minutes") for moment in found)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("period", "zone", "local", "start", "end"),
    [
        ("month", "Asia/Tokyo", "2026-01-31T23:59:59.999", "2026-01-01T00:00+09:00", "2026-02-01T00:00+09:00"),
        ("month", "Asia/Tokyo", "2026-02-01T00:00:00", "2026-02-01T00:00+09:00", "2026-03-01T00:00+09:00"),
        ("month", "Asia/Tokyo", "2028-02-29T23:59:59", "2028-02-01T00:00+09:00", "2028-03-01T00:00+09:00"),
        ("month", "America/New_York", "2026-03-31T23:59", "2026-03-01T00:00-05:00", "2026-04-01T00:00-04:00"),
        ("month", "America/New_York", "2026-12-31T23:59", "2026-12-01T00:00-05:00", "2027-01-01T00:00-05:00"),
        ("day", "America/New_York", "2026-03-08T12:00", "2026-03-08T00:00-05:00", "2026-03-09T00:00-04:00"),
        ("day", "America/New_York", "2026-11-01T01:30", "2026-11-01T00:00-04:00", "2026-11-02T00:00-05:00"),
        ("day", "Asia/Kathmandu", "2026-05-05T00:00", "2026-05-05T00:00+05:45", "2026-05-06T00:00+05:45"),
        ("day", "Australia/Lord_Howe", "2026-04-05T12:00", "2026-04-05T00:00+11:00", "2026-04-06T00:00+10:30"),
        # Midnight does not come: clocks leap from 0:00 to 1:00.
        ("day", "Asia/Beirut", "2026-03-29T12:00", "2026-03-29T01:00+03:00", "2026-03-30T00:00+03:00"),
        # It comes twice: at 1:00 clocks go back to 0:00.
        ("day", "America/Havana", "2026-11-01T12:00", "2026-11-01T00:00-04:00", "2026-11-02T00:00-05:00"),
        ("week", "Europe/Berlin", "2026-03-29T23:59", "2026-03-23T00:00+01:00", "2026-03-30T00:00+02:00"),
        ("week", "Europe/Berlin", "2026-03-30T00:00", "2026-03-30T00:00+02:00", "2026-04-06T00:00+02:00"),
        ("week", "UTC", "2027-01-01T00:00", "2026-12-28T00:00+00:00", "2027-01-04T00:00+00:00"),
    ],
)  # fmt: skip
def test_it_ends_where_local_days_do(period: str, zone: str, local: str, start: str, end: str) -> None:
    assert window(period, zone, local) == (start, end)


def test_a_total_has_no_end() -> None:
    endless = window_at("total", "Asia/Tokyo", datetime(2026, 1, 1, tzinfo=UTC))
    assert endless.is_endless
    assert endless.start_ms == 0
    assert Zones().window_after("acme", "total", endless) is None


zones = st.sampled_from(
    ["UTC", "Asia/Tokyo", "America/New_York", "Asia/Beirut", "America/Havana", "Australia/Lord_Howe", "Asia/Kathmandu",
     "Africa/Cairo", "America/Santiago", "Pacific/Apia", "America/St_Johns"]
)  # fmt: skip


@given(
    period=st.sampled_from(PERIODS),
    zone=zones,
    seconds=st.integers(0, 40 * 365 * 86400),
)
def test_each_instant_is_in_one_window_and_windows_meet(period: str, zone: str, seconds: int) -> None:
    at = datetime(2005, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    found = window_at(period, zone, at)
    assert found.start <= at < found.end
    assert window_at(period, zone, found.start) == found
    if not found.is_endless:
        assert window_at(period, zone, found.end - timedelta(microseconds=1)) == found
        after = window_at(period, zone, found.end)
        assert after.start == found.end


def zones_of(*names: str) -> Zones:
    """The first from the beginning, each other from March, May, July of 2026 on, as the database notes them."""
    rows: list[tuple[Any, ...]] = [("acme", date(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC), names[0])]
    for number, (before, name) in enumerate(pairwise(names)):
        month = date(2026, 3 + 2 * number, 1)
        since = datetime(month.year, month.month, 1, tzinfo=ZoneInfo(before)).astimezone(UTC)
        rows.append(("acme", month, since, name))
    return Zones(rows)


@given(
    period=st.sampled_from(PERIODS),
    names=st.lists(zones, min_size=1, max_size=4),
    minutes=st.integers(0, 240 * 24 * 60),
)
def test_windows_meet_through_any_change_of_zone(period: str, names: list[str], minutes: int) -> None:
    known = zones_of(*names)
    at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    found = known.window_at("acme", period, at)
    assert found.start <= at < found.end
    assert known.window_at("acme", period, found.start) == found
    after = known.window_after("acme", period, found)
    if after is not None:
        assert known.window_at("acme", period, found.end - timedelta(microseconds=1)) == found
        assert after.start == found.end


@pytest.mark.parametrize("name", ["Asia/Tokyo", "America/New_York", "Pacific/Apia"])
def test_another_zone_counts_from_the_next_month_on(name: str) -> None:
    known, march = zones_of("UTC", name), datetime(2026, 3, 1, tzinfo=UTC)
    before = known.window_at("acme", "month", march - timedelta(seconds=1))
    assert before == Window(datetime(2026, 2, 1, tzinfo=UTC), march)
    for period in ("day", "week", "month"):
        assert known.window_at("acme", period, march).start == march
    april = known.window_at("acme", "month", datetime(2026, 4, 15, tzinfo=UTC))
    assert april.start == datetime(2026, 4, 1, tzinfo=ZoneInfo(name))
    assert known.window_at("acme", "month", march).end == april.start
