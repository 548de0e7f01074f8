"""Which months a check reads each night: those that changed since it last read them, those that differed, and one of
the others in turn. So a night costs as much as the changed months and one more, however many there are.

The database notes what changes (migration 0029). What somebody writes past its triggers is found by turns, or by
`manage.py ledger check --all`.
"""

from collections.abc import Collection
from datetime import date, datetime, timedelta

from django.db import transaction

from billing import partitions
from billing.models import CheckedMonth, MonthChange

IN_TURN = 1
# A change is noted by the hour in which it was written. Its transaction commits within another.
_UNSURE = timedelta(hours=2)


def due_months(now: datetime) -> list[date]:
    """The months to read at `now`, in order; all there are where none was ever read. This one is always among them."""
    this_month = partitions.month_of(now)
    checked = {row.month: row for row in CheckedMonth.objects.all()}
    changed = set(MonthChange.objects.order_by().values_list("month", flat=True).distinct())
    begun = {month for month in partitions.existing_months() | partitions.dropped_months() if month <= this_month}
    months = begun | checked.keys()
    due = {month for month in months if month not in checked or checked[month].differs} | changed | {this_month}
    others = sorted(months - due, key=lambda month: (checked[month].checked_at, month))
    return sorted(due | set(others[:IN_TURN]))


@transaction.atomic
def note_checked(months: Collection[date], *, began: datetime, differing: Collection[date]) -> None:
    """Note that a check that began then read these months, `differing` among them, and forget their earlier changes."""
    CheckedMonth.objects.bulk_create(
        [CheckedMonth(month=month, checked_at=began, differs=month in differing) for month in months],
        update_conflicts=True,
        unique_fields=["month"],
        update_fields=["checked_at", "differs"],
    )
    MonthChange.objects.filter(month__in=months, at__lt=began - _UNSURE).delete()
