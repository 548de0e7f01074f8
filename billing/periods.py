"""Months, weeks, days and hours of a tenant: the one definition for records' sums, budgets, invoices, screens, exports.

All are [start, end) in the time zone that the tenant has then, and of each kind they tile time without gap or overlap.
Another time zone counts from the next month on: at the midnight that ends the running month in the old zone, every
month, week, day and hour ends, and the new zone's begin. What the new zone's clocks show of the month before, or of the
hour before, at that moment belongs to the new month, and its first day is the first of the month.

buckets.py says the same in SQL.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from django.db import connection

from billing.models import TenantZone
from billing.partitions import shift

DAY, WEEK, MONTH, TOTAL = PERIODS = ("day", "week", "month", "total")
_EPOCH, _NEVER = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)
_HOUR = timedelta(hours=1)

# The changes of these tenants; of all where they are None.
SELECT = """
SELECT tenant, month, since, time_zone FROM billing_tenantzone
WHERE %(tenants)s::text[] IS NULL OR tenant = ANY(%(tenants)s::text[]) ORDER BY tenant, since
"""


@dataclass(frozen=True)
class Period:
    """A month: `month` is the first day of the one it is called by; `start` and `end` are instants in UTC."""

    month: date
    start: datetime
    end: datetime
    time_zone: str

    def __str__(self) -> str:
        return f"{self.month:%Y-%m}"


class Window(NamedTuple):
    """A budget's day, week or month, or all time: from `start` on and before `end`, both UTC."""

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


@dataclass(frozen=True)
class ZoneChange:
    """From the period called `month` on, which begins at `since`, time is that of `time_zone`."""

    month: date
    since: datetime
    time_zone: str


class Calendar:
    """One tenant's time, from its zone changes in order of time; the first counts from the beginning."""

    def __init__(self, changes: Iterable[ZoneChange]) -> None:
        self._changes = sorted(changes, key=lambda change: change.since)
        self._months = [change.month for change in self._changes]
        self._sinces = [change.since for change in self._changes]

    @property
    def changes(self) -> list[ZoneChange]:
        """The changes to another zone, the first zone left out."""
        return self._changes[1:]

    def time_zone_at(self, moment: datetime) -> str:
        return self._changes[self._index(moment)].time_zone

    def period(self, month: date) -> Period:
        """The period called by `month`, a first of the month."""
        index, change = self._of_month(month)
        start = change.since if index and change.month == month else month_start(month, change.time_zone)
        return Period(month, start, month_start(shift(month, 1), change.time_zone), change.time_zone)

    def at(self, moment: datetime) -> Period:
        """The period that holds `moment`."""
        return self.period(self.date_at(moment).replace(day=1))

    def ended(self, first: datetime, now: datetime) -> Iterator[Period]:
        """The periods that are over at `now`, from the one that holds `first`, in order."""
        period = self.at(first)
        while period.end <= now:
            yield period
            period = self.period(shift(period.month, 1))

    def date_at(self, moment: datetime) -> date:
        """The tenant's day in which `moment` lies."""
        index = self._index(moment)
        change = self._changes[index]
        local = moment.astimezone(ZoneInfo(change.time_zone)).date()
        return max(local, change.month) if index else local

    def day_start(self, day: date) -> datetime:
        """The instant in UTC at which the tenant's `day` begins; of a day that no clock shows, the next one's."""
        index, change = self._of_month(day)
        if index and day <= change.month:
            return change.since
        begin = day_begin(day, change.time_zone)
        return max(begin, change.since) if index else begin

    def hour_start(self, moment: datetime) -> datetime:
        """The instant in UTC that names the tenant's hour in which `moment` lies."""
        index = self._index(moment)
        change = self._changes[index]
        local = moment.astimezone(ZoneInfo(change.time_zone))
        past = timedelta(minutes=local.minute, seconds=local.second, microseconds=local.microsecond)
        begin = moment.astimezone(UTC) - past
        return max(begin, change.since) if index else begin

    def hours(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """The beginnings of the tenant's hours of [start, end), from the one that holds `start`."""
        hour = self.hour_start(start)
        while hour < end:
            yield hour
            hour = self.hour_start(hour + _HOUR)

    def days(self, start: datetime, end: datetime) -> Iterator[tuple[date, datetime]]:
        """The tenant's days of [start, end), from the one that holds `start`, with their beginnings."""
        day = self.date_at(start)
        while (begin := self.day_start(day)) < end:
            if self.date_at(begin) == day:
                yield day, begin
            day += timedelta(days=1)

    def window_at(self, period: str, at: datetime) -> Window:
        """The window of `period` in which `at` (aware) lies."""
        if period == TOTAL:
            return Window(_EPOCH, _NEVER)
        index = self._index(at)
        change = self._changes[index]
        first = _first(period, self.date_at(at))
        start = day_begin(first, change.time_zone)
        if index:
            start = change.since if first <= change.month else max(start, change.since)
        end = day_begin(_next(period, first), change.time_zone)
        return Window(start, min([end, *self._sinces[index + 1 : index + 2]]))

    def _index(self, moment: datetime) -> int:
        return max(0, bisect_right(self._sinces, moment) - 1)

    def _of_month(self, day: date) -> tuple[int, ZoneChange]:
        index = max(0, bisect_right(self._months, day.replace(day=1)) - 1)
        return index, self._changes[index]


class Zones:
    """The calendars of tenants, built whole from the rows of SELECT. A tenant that is in none has UTC."""

    def __init__(self, rows: Iterable[tuple[Any, ...]] = ()) -> None:
        self._of_tenant: dict[str, Calendar] = {}
        self.replace((), rows)

    def replace(self, tenants: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> None:
        """Know of `tenants` what `rows`, theirs or all, say, and no more what was known."""
        for tenant in tenants:
            self._of_tenant.pop(tenant, None)
        changes: dict[str, list[ZoneChange]] = {}
        for tenant, *change in rows:
            changes.setdefault(tenant, []).append(ZoneChange(*change))
        self._of_tenant |= {tenant: Calendar(found) for tenant, found in changes.items()}

    def calendar(self, tenant: str) -> Calendar:
        return self._of_tenant.get(tenant, _IN_UTC)

    def window_at(self, tenant: str, period: str, at: datetime) -> Window:
        """The window of `period` in which `at` (aware) lies."""
        return self.calendar(tenant).window_at(period, at)

    def window_after(self, tenant: str, period: str, window: Window) -> Window | None:
        """The window that begins where `window` ends; None after an endless one."""
        return None if window.is_endless else self.window_at(tenant, period, window.end)


def read_zones(tenants: Iterable[str] | None = None) -> Zones:
    """Of these tenants, or of all."""
    with connection.cursor() as cursor:
        cursor.execute(SELECT, {"tenants": None if tenants is None else list(tenants)})
        return Zones(cursor.fetchall())


def calendar_of(tenant: str) -> Calendar:
    """A tenant unknown to the database has UTC."""
    rows = TenantZone.objects.filter(tenant=tenant).values_list("month", "since", "time_zone")
    return Calendar([ZoneChange(*row) for row in rows]) if rows else _IN_UTC


def window_at(period: str, time_zone: str, at: datetime) -> Window:
    """As of a tenant that always had `time_zone`."""
    return always_in(time_zone).window_at(period, at)


def month_start(month: date, time_zone: str) -> datetime:
    """The instant `month`, a first of the month, begins in `time_zone`, in UTC."""
    return day_begin(month, time_zone)


def day_begin(day: date, time_zone: str) -> datetime:
    """The first instant of a local day, in UTC: of two midnights the first, of none the end of the gap.

    A day that a zone left out altogether begins and ends at once.
    """
    # fold=0: one that clocks leap over is read with the offset before the leap, which makes it the instant of the leap.
    return datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(time_zone), fold=0).astimezone(UTC)


def always_in(time_zone: str) -> Calendar:
    """The calendar of a tenant that always had `time_zone`."""
    return Calendar([ZoneChange(date.min, datetime.min.replace(tzinfo=UTC), time_zone)])


def _first(period: str, day: date) -> date:
    if period == WEEK:
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if period == MONTH else day


def _next(period: str, day: date) -> date:
    return shift(day, 1) if period == MONTH else day + timedelta(days=7 if period == WEEK else 1)


def _ms(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


_IN_UTC = always_in("UTC")
