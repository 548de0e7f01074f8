"""Which months' records invoices still need: those of periods that are to be finalised, and what came late."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any

from django.db.models import Max, Min

from billing.models import BillingAccount, Invoice, LateUsage, UsageHour
from billing.partitions import month_span
from billing.periods import Period, calendar_of
from billing.usage import SHADOW

_HOUR = timedelta(hours=2)  # an hour's records may begin before it is midnight in UTC, and clocks may be set back


def needed_by_invoices(month: date) -> str | None:
    """Why the records of `month` (UTC) are needed yet; None if every invoice on them is finalised, or nobody gets one.

    A tenant gets invoices if a legal entity invoices it, or if there is a draft.
    """
    start, end = month_span(month)
    late = LateUsage.objects.filter(invoice=None, admitted_at__gte=start, admitted_at__lt=end).count()
    if late:
        return f"{late} of its records came late and are on no invoice yet"
    invoiced = set(BillingAccount.objects.exclude(legal_entity=None).values_list("tenant_id", flat=True))
    for tenant, currency, period in _used(start, end):
        documents = Invoice.objects.of(tenant).filter(period_start=period.start, currency=currency)
        is_due = tenant in invoiced or documents.filter(status=Invoice.Status.DRAFT).exists()
        if is_due and not documents.stating_usage().exists():
            return f"{tenant}'s {period} in {currency} is not finalised"
    return None


def _used(start: datetime, end: datetime) -> Iterator[tuple[str, str, Period]]:
    """Each tenant's periods with use within [start, end), by currency."""
    hours: Any = UsageHour.objects.filter(hour__gt=start - _HOUR, hour__lt=end).exclude(kind=SHADOW)
    hours = hours.exclude(input_tokens=0, cached_input_tokens=0, output_tokens=0).order_by()
    spans = hours.values_list("tenant", "currency").annotate(Min("hour"), Max("hour")).order_by("tenant", "currency")
    for tenant, currency, first, last in spans:
        calendar = calendar_of(tenant)
        period = calendar.at(first)
        yield tenant, currency, period
        if last >= period.end:
            yield tenant, currency, calendar.at(last)
