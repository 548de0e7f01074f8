"""Windows meet without gap or overlap, whatever clocks do: month ends, leap days, changes to summer time and back."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.budgets.windows import PERIODS, Window, window_after, window_at


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
    assert window_after("total", "Asia/Tokyo", endless) is None


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
        after = window_after(period, zone, found)
        assert isinstance(after, Window)
        assert after.start == found.end
