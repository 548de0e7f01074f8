"""What a report is asked: of which time, by which buckets, narrowed to what."""

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from billing.cost.hosted import Hosted

UTC_ZONE = ZoneInfo("UTC")
UNITS = ("hour", "day", "month")


@dataclass(frozen=True)
class Asked:
    """[start, end) and its buckets, in `zone`. `hosted`: compared with it instead of the providers' price lists."""

    start: datetime
    end: datetime
    by: str = "day"
    zone: ZoneInfo = UTC_ZONE
    pool: str | None = None
    model: str | None = None
    currency: str | None = None
    hosted: Hosted | None = None


def bucket_start(hour: datetime, by: str, zone: ZoneInfo) -> datetime:
    """The start of the hour's bucket, which begins with the local hour, day or month. Days have 23 to 25 hours."""
    local = hour.astimezone(zone)
    if by == "hour":
        return local
    day = local.date() if by == "day" else local.date().replace(day=1)
    return datetime.combine(day, time(), zone)


def default_span(by: str, now: datetime, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """What is shown unless asked otherwise: two days by the hour, thirty by the day, a year by the month."""
    end = now.astimezone(zone)
    days = {"hour": 2, "day": 30, "month": 365}[by]
    start = bucket_start(now - timedelta(days=days), "hour" if by == "hour" else by, zone)
    return start.replace(minute=0, second=0, microsecond=0), end
