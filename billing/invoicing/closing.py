"""Closing: a period that is over gets a draft, or its draft is computed anew; any number of times."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from billing.invoicing import drafting
from billing.invoicing.locking import lock_invoices
from billing.models import BillingAccount, Invoice, LateUsage, UsageHour
from billing.periods import Calendar, Period, calendar_of
from billing.usage import SHADOW
from tenants.models import Tenant

log = logging.getLogger("headrace.invoices")


@dataclass
class Closed:
    """What a run of closing left: the drafts there are now, and why a tenant has none (its slug, the reason)."""

    drafts: list[Invoice] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)


def close_all(*, now: datetime | None = None, tenants: Iterable[str] | None = None) -> Closed:
    """Close every period that is over at `now`, of `tenants` or of all. One that fails is told and stops no other."""
    now = now or timezone.now()
    closed = Closed()
    slugs = Tenant.objects.order_by("slug").values_list("slug", flat=True)
    for slug in slugs if tenants is None else tenants:
        try:
            closed.drafts += close_tenant(slug, now=now)
        except Exception as error:
            log.exception("the periods of %s are not closed", slug)
            closed.failed.append((slug, f"{type(error).__name__}: {error}"))
    return closed


@transaction.atomic
def close_tenant(slug: str, *, now: datetime) -> list[Invoice]:
    """The tenant's drafts, one for each period and currency that is over and not invoiced and has anything to state.

    Usage without a price has a draft too, if an empty one: what waits for somebody to price it must be seen.
    """
    lock_invoices(slug)
    tenant = Tenant.objects.get(slug=slug)
    calendar = calendar_of(slug)
    documents = Invoice.objects.of(slug).filter(kind=Invoice.Kind.INVOICE).exclude(status=Invoice.Status.VOIDED)
    standing = {(invoice.period_start, invoice.currency): invoice for invoice in documents.defer("content")}
    drafts = []
    late = _late_currencies(tenant, documents)
    for period in (periods := list(_periods(tenant, calendar, now))):
        for currency in sorted({*_currencies(tenant, period), *(late if period == periods[-1] else ())}):
            invoice = standing.get((period.start, currency)) or _new(tenant, period, currency)
            if not invoice.is_draft:
                continue
            draft = drafting.compute(tenant, calendar, period, currency)
            if not draft.is_empty:
                drafting.write(invoice, draft, now)
                drafts.append(invoice)
            elif not invoice._state.adding:
                invoice.delete()
    return drafts


def _periods(tenant: Tenant, calendar: Calendar, now: datetime) -> Iterable[Period]:
    """From the tenant's first day, or its first use where that is earlier, to the last that is over."""
    first = drafting.first_use(tenant.slug)
    if first is None and not BillingAccount.objects.filter(tenant=tenant, minimum_fee__gt=0).exists():
        return []
    begin = tenant.created_at if first is None else min(first, tenant.created_at)
    return calendar.ended(begin, now)


def _late_currencies(tenant: Tenant, documents: QuerySet[Invoice]) -> set[str]:
    """Currencies that the tenant uses no more, perhaps, and of which late usage may wait: for the last period."""
    if not LateUsage.objects.filter(tenant=tenant.slug, invoice=None).exists():
        return set()
    return set(documents.order_by().exclude(currency=tenant.currency).values_list("currency", flat=True).distinct())


def _currencies(tenant: Tenant, period: Period) -> set[str]:
    """The tenant's own, and others that it used in the period: each has an invoice of its own."""
    hours = UsageHour.objects.of(tenant).filter(hour__gte=period.start, hour__lt=period.end).exclude(kind=SHADOW)
    others = hours.exclude(currency=tenant.currency).order_by().values_list("currency", flat=True).distinct()
    return {*others, tenant.currency}


def _new(tenant: Tenant, period: Period, currency: str) -> Invoice:
    return Invoice(
        tenant=tenant,
        currency=currency,
        period=period.month,
        period_start=period.start,
        period_end=period.end,
        time_zone=period.time_zone,
    )
