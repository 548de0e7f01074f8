"""The windows of budgets: [start, end) of a day, week or month in the tenant's time zone.

A window begins with the first instant of its first local day, whatever clock changes do to midnight; weeks begin on
Monday. So each instant is in one window of each kind, and windows meet without gap or overlap.
"""

from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

DAY, WEEK, MONTH, TOTAL = PERIODS = ("day", "week", "month", "total")
_EPOCH, _NEVER = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)


class Window(NamedTuple):
    """From `start` on and before `end`, both UTC."""

    start: datetime
    end: datetime

    @property
    def is_endless(self) -> bool:
        return self.end == _NEVER

    @property
    def start_ms(self) -> int:
        return _ms(self.start)

    @property
    def end_ms(self) -> int:
        return _ms(self.end)


def window_at(period: str, time_zone: str, at: datetime) -> Window:
    """The window of `period` in which `at` (aware) lies."""
    if period == TOTAL:
        return Window(_EPOCH, _NEVER)
    zone = ZoneInfo(time_zone)
    day = at.astimezone(zone).date()
    if period == WEEK:
        day -= timedelta(days=day.weekday())
    elif period == MONTH:
        day = day.replace(day=1)
    return Window(_begin(day, zone), _begin(_next(period, day), zone))


def day_begin(day: date, time_zone: str) -> datetime:
    """The first instant of a local day, in UTC."""
    return _begin(day, ZoneInfo(time_zone))


def _next(period: str, day: date) -> date:
    if period == MONTH:
        return date(day.year + day.month // 12, day.month % 12 + 1, 1)
    return day + timedelta(days=7 if period == WEEK else 1)


def _begin(day: date, zone: ZoneInfo) -> datetime:
    # fold=0: of a midnight that comes twice the first; one that clocks leap over is read with the offset before the
    # leap, which makes it the instant of the leap. A day that a zone left out altogether begins and ends at once.
    return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)


def _ms(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)
