"""The spans of time that pages speak of: [start, end) in the tenant's time zone, and what each is compared with."""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

CHOICES = {
    "today": "Today",
    "yesterday": "Yesterday",
    "7d": "Last 7 days",
    "30d": "Last 30 days",
    "month": "This month",
    "last-month": "Last month",
}
DEFAULT = "7d"
LONGEST = timedelta(days=400)


@dataclass(frozen=True, slots=True)
class Period:
    """`name` is a key of CHOICES. `before` is where the span it is compared with begins."""

    name: str
    start: datetime
    end: datetime
    before: datetime
    zone: str

    @property
    def title(self) -> str:
        return CHOICES[self.name]

    @property
    def before_end(self) -> datetime:
        """As much of the span before as has passed of this one."""
        return self.before + (self.end - self.start)

    @property
    def is_short(self) -> bool:
        """Whether hours, not days, are what its course is drawn in."""
        return self.end - self.start <= timedelta(hours=49)


def period(name: str, zone: str, now: datetime) -> Period:
    """The span called `name` at `now`; an unknown name is the default one. Days are the tenant's own."""
    name = name if name in CHOICES else DEFAULT
    here = ZoneInfo(zone)
    today = now.astimezone(here).date()
    first = today.replace(day=1)
    days = {
        "today": (today, None, today - timedelta(days=1)),
        "yesterday": (today - timedelta(days=1), today, today - timedelta(days=2)),
        "7d": (today - timedelta(days=6), None, today - timedelta(days=13)),
        "30d": (today - timedelta(days=29), None, today - timedelta(days=59)),
        "month": (first, None, _month_before(first)),
        "last-month": (_month_before(first), first, _month_before(_month_before(first))),
    }
    start, end, before = days[name]
    return Period(name, _midnight(start, here), _midnight(end, here) if end else now, _midnight(before, here), zone)


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time(), zone)


def _month_before(first: date) -> date:
    return (first - timedelta(days=1)).replace(day=1)
