"""The spans of time that pages speak of, out of the tenant's calendar, and what each is compared with.

Days and months are those of budgets and invoices (billing/periods.py): what a page says of a month is what its invoice
states.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from billing.partitions import shift
from billing.periods import Calendar

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
_DAYS = {"today": 1, "7d": 7, "30d": 30}


@dataclass(frozen=True, slots=True)
class Period:
    """[start, end) in UTC; `name` is a key of CHOICES, `zone` the one whose time pages show.

    It is compared with [before, before_end): the span of its kind before it, as much of that as has passed of this one,
    all of it where this one is over, and never anything of this one.
    """

    name: str
    start: datetime
    end: datetime
    before: datetime
    before_end: datetime
    zone: str
    calendar: Calendar

    @property
    def title(self) -> str:
        return CHOICES[self.name]

    @property
    def is_short(self) -> bool:
        """Whether hours, not days, are what its course is drawn in."""
        return self.end - self.start <= timedelta(hours=49)


def period(name: str, calendar: Calendar, now: datetime) -> Period:
    """The span called `name` at `now`; an unknown name is the default one."""
    name = name if name in CHOICES else DEFAULT
    now = now.astimezone(UTC)
    start, end, before = _bounds(name, calendar, now)
    before_end = start if end < now else min(start, before + (end - start))
    return Period(name, start, end, before, before_end, calendar.time_zone_at(now), calendar)


def _bounds(name: str, calendar: Calendar, now: datetime) -> tuple[datetime, datetime, datetime]:
    """Where the span begins and ends, and where the one before begins."""
    if name in {"month", "last-month"}:
        month = calendar.at(now).month
        first = month if name == "month" else shift(month, -1)
        start, before = calendar.period(first).start, calendar.period(shift(first, -1)).start
        return start, now if name == "month" else calendar.period(month).start, before
    today = calendar.date_at(now)
    if name == "yesterday":
        start, before = (calendar.day_start(today - timedelta(days=days)) for days in (1, 2))
        return start, calendar.day_start(today), before
    days = _DAYS[name]
    start, before = (calendar.day_start(today - timedelta(days=back - 1)) for back in (days, 2 * days))
    return start, now, before
