"""The ledger's monthly partitions (UTC). The database makes them: the worker may not create tables."""

from datetime import UTC, date, datetime

from django.db import connection

from billing.models import DroppedMonth

MONTHS_AHEAD = 2


def existing_months() -> set[date]:
    """The first day of each month that has a partition."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT to_date(right(inhrelid::regclass::text, 6), 'YYYYMM') FROM pg_inherits"
            " WHERE inhparent = 'billing_usagerecord'::regclass"
        )
        return {row[0] for row in cursor.fetchall()}


def dropped_months() -> set[date]:
    """The first day of each month whose records retention has dropped. Their hours are kept."""
    return set(DroppedMonth.objects.values_list("month", flat=True))


def ensure_months(now: datetime | None = None) -> list[date]:
    """Make what is missing from last month to MONTHS_AHEAD; the months made. May be repeated and run twice at once."""
    now = now or datetime.now(UTC)
    made = []
    with connection.cursor() as cursor:
        for distance in range(-1, MONTHS_AHEAD + 1):
            month = shift(now.astimezone(UTC).date(), distance)
            cursor.execute("SELECT headrace_usage_partition(%s)", [month])
            if cursor.fetchone()[0]:
                made.append(month)
    return made


def drop_month(month: date) -> int | None:
    """Drop the records of `month`, for good; how many there were, None if it had no partition. Its hours stay.

    The database refuses months that are not over for long. Raises django.db.OperationalError when the table is busy.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT headrace_drop_usage_partition(%s)", [month])
        (dropped,) = cursor.fetchone()
    return None if dropped is None else int(dropped)


def shift(day: date, months: int) -> date:
    """The first day of the month so many months after that of `day`."""
    index = day.year * 12 + day.month - 1 + months
    return date(index // 12, index % 12 + 1, 1)


def month_span(month: date) -> tuple[datetime, datetime]:
    """[start, end) of a partition's month."""
    end = shift(month, 1)
    return datetime(month.year, month.month, 1, tzinfo=UTC), datetime(end.year, end.month, 1, tzinfo=UTC)


def month_of(moment: datetime) -> date:
    return moment.astimezone(UTC).date().replace(day=1)
