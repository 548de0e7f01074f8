"""Computing a draft from the ledger as it is now. Whoever calls holds the tenant's lock."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.db.models import Min

from billing.amounts import ZERO
from billing.invoicing.lines import Kind, Use, stated, usage_lines, use_of
from billing.invoicing.remaining import with_remaining
from billing.invoicing.totals import Terms, with_totals
from billing.models import BillingAccount, Credit, Invoice, InvoiceLine, LateUsage, UsageHour
from billing.periods import Calendar, Period
from tenants.models import Tenant


@dataclass
class Draft:
    """What an invoice of one period and currency would say: its lines, and the use behind them by period."""

    lines: list[InvoiceLine]
    uses: dict[Period, Use]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to state, nor anything that waits for a price to be stated."""
        waits = any(use.unpriced_tokens or use.unknown_prices for use in self.uses.values())
        return not self.lines and not waits

    @property
    def net(self) -> Decimal:
        return sum((line.amount for line in self.lines if line.kind != Kind.TAX), ZERO)

    @property
    def tax(self) -> Decimal:
        return sum((line.amount for line in self.lines if line.kind == Kind.TAX), ZERO)


def compute(tenant: Tenant, calendar: Calendar, period: Period, currency: str) -> Draft:
    """The period's usage that no invoice states yet, adjustments for earlier ones, and what follows from the terms."""
    account = BillingAccount.objects.filter(tenant=tenant).first()
    uses = {period: use_of(tenant.slug, period, currency)}
    before = stated(tenant.slug, period.month, currency)
    lines = list(usage_lines(uses[period], before, month=period.month, currency=currency, kind=Kind.USAGE))
    for earlier in _to_adjust(tenant.slug, calendar, period, currency):
        use, before = use_of(tenant.slug, earlier, currency), stated(tenant.slug, earlier.month, currency)
        if use.tokens != before:
            uses[earlier] = use
            lines += usage_lines(use, before, month=earlier.month, currency=currency, kind=Kind.ADJUSTMENT)
    terms = _terms(account, period, is_tenants_currency=currency == tenant.currency)
    credits = with_remaining(Credit.objects.filter(tenant=tenant, currency=currency))
    return Draft(with_totals(lines, terms, credits, month=period.month, currency=currency), uses)


def _terms(account: BillingAccount | None, period: Period, *, is_tenants_currency: bool) -> Terms:
    if account is None:
        return Terms()
    has_fee = is_tenants_currency and period.end > account.since
    return Terms(account.tax_rate, account.discount_percent, account.minimum_fee if has_fee else ZERO)


def _to_adjust(tenant: str, calendar: Calendar, period: Period, currency: str) -> Iterator[Period]:
    """The invoiced periods that may state something else than was used, which this draft is the first to follow.

    Those are the ones with usage that came later and is on no invoice, and the two that meet at a change of time zone:
    their hours were summed otherwise once.
    """
    documents = Invoice.objects.of(tenant).filter(kind=Invoice.Kind.INVOICE, currency=currency)
    drafts = documents.filter(status=Invoice.Status.DRAFT, period_start__lt=period.start)
    latest = drafts.order_by("-period_start").values_list("period_start", flat=True).first()
    since = latest or datetime.min.replace(tzinfo=period.start.tzinfo)
    late = LateUsage.objects.filter(tenant=tenant, invoice=None, admitted_at__lt=period.start).order_by()
    moments = (
        late.values_list("admitted_at__date").annotate(Min("admitted_at")).values_list("admitted_at__min", flat=True)
    )
    months = {calendar.at(moment).month for moment in moments}
    for change in calendar.changes:
        if change.since <= period.start:
            months |= {calendar.at(change.since - timedelta(microseconds=1)).month, change.month}
    finalised = set(documents.stating_usage().values_list("period_start", flat=True))
    for month in sorted(months):
        earlier = calendar.period(month)
        if earlier.start in finalised and since <= earlier.start < period.start:
            yield earlier


def write(invoice: Invoice, draft: Draft, now: datetime) -> None:
    """Replace a draft's lines and totals."""
    invoice.net, invoice.tax = draft.net, draft.tax
    invoice.total = draft.net + draft.tax
    invoice.drafted_at = now
    if invoice._state.adding:
        invoice.save(force_insert=True)
    else:  # an update that names the status is on the audit trail, each hour
        invoice.save(update_fields=["net", "tax", "total", "drafted_at"])
    invoice.lines.all().delete()
    for line in draft.lines:
        line.invoice = invoice
    InvoiceLine.objects.bulk_create(draft.lines, batch_size=1000)


def first_use(tenant: str) -> datetime | None:
    hour: datetime | None = UsageHour.objects.of(tenant).aggregate(Min("hour"))["hour__min"]
    return hour
