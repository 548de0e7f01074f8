"""A tenant's periods: calendar months in its time zone, [start, end), that tile time without gap or overlap.

A period is called by its month. It begins where the one before ends, and ends at the midnight that begins the next
month in the zone that was the tenant's when it began: so another time zone counts from the next period on, and the
period before that one is a few hours longer or shorter where it would otherwise overlap or leave a gap.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

from billing.models import TenantZone
from billing.partitions import shift


@dataclass(frozen=True)
class Period:
    """`month` is the first day of the month it is called by; `start` and `end` are instants in UTC."""

    month: date
    start: datetime
    end: datetime
    time_zone: str

    def __str__(self) -> str:
        return f"{self.month:%Y-%m}"


@dataclass(frozen=True)
class ZoneChange:
    """From the period called `month` on, which begins at `since`, months are those of `time_zone`."""

    month: date
    since: datetime
    time_zone: str


class Calendar:
    """The periods of one tenant, from its zone changes in order of time; the first counts from the beginning."""

    def __init__(self, changes: Iterable[ZoneChange]) -> None:
        self._changes = sorted(changes, key=lambda change: change.since)
        self._months = [change.month for change in self._changes]
        self._sinces = [change.since for change in self._changes]

    def period(self, month: date) -> Period:
        """The period called by `month`, a first of the month."""
        index = max(0, bisect_right(self._months, month) - 1)
        change = self._changes[index]
        start = change.since if index and change.month == month else month_start(month, change.time_zone)
        return Period(month, start, month_start(shift(month, 1), change.time_zone), change.time_zone)

    def at(self, moment: datetime) -> Period:
        """The period that holds `moment`."""
        index = max(0, bisect_right(self._sinces, moment) - 1)
        change = self._changes[index]
        local = moment.astimezone(ZoneInfo(change.time_zone)).date().replace(day=1)
        return self.period(max(local, change.month) if index else local)

    def ended(self, first: datetime, now: datetime) -> Iterator[Period]:
        """The periods that are over at `now`, from the one that holds `first`, in order."""
        period = self.at(first)
        while period.end <= now:
            yield period
            period = self.period(shift(period.month, 1))


def calendar_of(tenant: str) -> Calendar:
    """A tenant unknown to the database has UTC."""
    rows = TenantZone.objects.filter(tenant=tenant).values_list("month", "since", "time_zone")
    return Calendar(
        [ZoneChange(*row) for row in rows] or [ZoneChange(date.min, datetime.min.replace(tzinfo=UTC), "UTC")]
    )


def month_start(month: date, time_zone: str) -> datetime:
    """The instant `month` begins in `time_zone`, in UTC: of two midnights the first, of none the end of the gap."""
    return datetime(month.year, month.month, 1, tzinfo=ZoneInfo(time_zone), fold=0).astimezone(UTC)
