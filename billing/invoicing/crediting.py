"""Credit notes: documents with numbers of the same series that take back part of an invoice, or all of it."""

from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.db import transaction
from django.db.models import Sum
from django.utils import timezone

from billing.amounts import ZERO, percent_of, plain, rounded
from billing.invoicing.content import stated_by
from billing.invoicing.errors import NotPossible
from billing.invoicing.finalising import number_and_copy
from billing.invoicing.lines import Kind
from billing.invoicing.locking import lock_invoices
from billing.models import BillingAccount, Invoice, InvoiceLine


@transaction.atomic
def credit_invoice(pk: UUID, *, reason: str, net: Decimal | None = None, now: datetime | None = None) -> Invoice:
    """A finalised credit note over `net` (before tax; None: all that is left) of a finalised invoice.

    The tax is the invoice's rate of `net`; what credits an invoice to the end takes the rest of its tax, so that notes
    never add up to more or less than the invoice. Usage stays invoiced. Raises NotPossible.
    """
    now = now or timezone.now()
    if not reason.strip():
        raise NotPossible("a credit note states a reason")
    tenant = Invoice.objects.values_list("tenant_id", flat=True).get(pk=pk)
    lock_invoices(tenant)
    invoice = Invoice.objects.select_for_update(of=("self",)).select_related("tenant").get(pk=pk)
    if not invoice.is_finalised or invoice.is_credit_note:
        raise NotPossible(f"{invoice} is not a finalised invoice")
    left = _left(invoice)
    net = left[0] if net is None else net
    if net != rounded(net, invoice.currency) or not 0 < net <= left[0]:
        raise NotPossible(f"{plain(net)} is not an amount up to {plain(left[0])} {invoice.currency}, what is left")
    rate = Decimal(stated_by(invoice)["tax_rate"])
    tax = left[1] if net == left[0] else min(left[1], rounded(percent_of(net, rate), invoice.currency))
    return _issue(invoice, net, tax, reason.strip(), now)


def _left(invoice: Invoice) -> tuple[Decimal, Decimal]:
    """Net and tax that no credit note took back yet."""
    notes = invoice.credit_notes.filter(status=Invoice.Status.FINALISED)
    taken = notes.aggregate(net=Sum("net", default=ZERO), tax=Sum("tax", default=ZERO))
    return invoice.net + taken["net"], invoice.tax + taken["tax"]


def _issue(invoice: Invoice, net: Decimal, tax: Decimal, reason: str, now: datetime) -> Invoice:
    names = ("tenant", "currency", "period", "period_start", "period_end", "time_zone")
    note = Invoice(
        kind=Invoice.Kind.CREDIT_NOTE,
        of_invoice=invoice,
        net=-net,
        tax=-tax,
        total=-net - tax,
        **{name: getattr(invoice, name) for name in names},
    )
    note.save(force_insert=True)
    text = f"Credit for invoice {invoice.number}: {reason}"[:500]
    lines = [(Kind.CREDIT, text, -net)]
    if tax:
        lines.append((Kind.TAX, f"Tax on it, {stated_by(invoice)['tax_rate']} %", -tax))
    InvoiceLine.objects.bulk_create(
        InvoiceLine(
            invoice=note,
            position=place,
            kind=kind,
            period=invoice.period,
            description=words,
            exact=amount,
            amount=amount,
        )
        for place, (kind, words, amount) in enumerate(lines, start=1)
    )
    account = BillingAccount.objects.select_related("legal_entity").get(tenant=invoice.tenant_id)
    account.legal_entity_id, account.tax_rate = invoice.legal_entity_id, Decimal(stated_by(invoice)["tax_rate"])
    number_and_copy(note, account, now)
    return note
