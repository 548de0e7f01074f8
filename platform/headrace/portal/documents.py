"""A tenant's invoices as its pages show them: issued ones, drafts of months that are over, and the month that runs.

All of it is read within `rows_of`. What is shown of a document is its content (billing/invoicing/content.py), which is
what every download is made of too.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime

from django.db.models import DateField, QuerySet
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from billing.invoicing import drafting
from billing.invoicing.content import Content, content_of
from billing.invoicing.finalising import grace_time
from billing.invoicing.lines import Use
from billing.models import BillingAccount, Invoice, LegalEntity
from billing.periods import Period, calendar_of
from headrace_core.time_zones import zone_named
from tenants.models import Tenant


@dataclass(frozen=True, slots=True)
class Document:
    """One document with all it states. `is_running`: of the month that is not over, computed now and kept nowhere."""

    invoice: Invoice
    content: Content
    is_running: bool = False

    @property
    def due_on(self) -> date | None:
        return date.fromisoformat(self.content["due_on"]) if self.content["due_on"] else None


def listed(tenant: Tenant) -> QuerySet[Invoice]:
    """Newest first, each with `due_on` (None of drafts and credit notes), without all else that it states."""
    due_on = Cast(KeyTextTransform("due_on", "content"), DateField())
    rows = Invoice.objects.of(tenant).annotate(due_on=due_on)
    return rows.defer("content").order_by("-period_start", "-sequence", "currency")


def document(invoice: Invoice) -> Document:
    """As issued; a draft as it was last computed."""
    if invoice.content is not None:
        return Document(invoice, invoice.content)
    return Document(invoice, content_of(invoice, invoice.lines.order_by("position"), account_of(invoice.tenant)))


def running(tenant: Tenant, now: datetime) -> Document:
    """The month that runs, in the tenant's currency, with what has been used of it so far."""
    calendar = calendar_of(tenant.pk)
    period = calendar.at(now)
    draft = drafting.compute(tenant, calendar, period, tenant.currency)
    invoice = Invoice(tenant=tenant, currency=tenant.currency, time_zone=period.time_zone)
    invoice.period, invoice.period_start, invoice.period_end = period.month, period.start, period.end
    invoice.net, invoice.tax, invoice.total = draft.net, draft.tax, draft.net + draft.tax
    return Document(invoice, content_of(invoice, draft.lines, account_of(tenant)), is_running=True)


def account_of(tenant: Tenant) -> BillingAccount | None:
    """The tenant's terms, with who invoices it: of that company what stands on an invoice, read on the platform's own
    connection, because no tenant reads the table itself."""
    account = BillingAccount.objects.filter(tenant=tenant).first()
    if account is not None and account.legal_entity_id:
        printed = ("slug", "name", "address", "tax_id", "email", "company_data")
        account.legal_entity = LegalEntity.objects.using("default").only(*printed).get(pk=account.legal_entity_id)
    return account


def waits_for(invoice: Invoice, now: datetime) -> Iterator[str]:
    """Why a draft is not an invoice yet, in a tenant's words."""
    if not invoice.is_draft:
        return
    ready = invoice.period_end + grace_time()
    if now < ready:
        yield f"It stays open for late usage until {_moment(ready, invoice.time_zone)}."
    account = account_of(invoice.tenant)
    if account is None or account.legal_entity_id is None:
        yield "Nobody is named yet who invoices you: ask the platform's operators."
    earlier = Invoice.objects.of(invoice.tenant).filter(status="draft", period_start__lt=invoice.period_start)
    if first := earlier.order_by("period_start").first():
        yield f"The draft of {first.period:%B %Y} has to be issued before it."
    calendar = calendar_of(invoice.tenant_id)
    period = calendar.period(invoice.period)
    yield from _of_figures(drafting.compute(invoice.tenant, calendar, period, invoice.currency).uses)


def _of_figures(uses: dict[Period, Use]) -> Iterator[str]:
    for period, use in uses.items():
        month = f"{period.month:%B %Y}"
        if use.unpriced_tokens:
            yield f"{use.unpriced_tokens:,} tokens of {month} have no price yet. The platform's operators set one."
        if use.unknown_prices or use.costs_differ:
            yield f"Some figures of {month} do not agree with each other. The platform's operators look into it."


def _moment(moment: datetime, zone: str) -> str:
    local = moment.astimezone(zone_named(zone))
    return f"{local.day} {local:%b %Y, %H:%M}"
