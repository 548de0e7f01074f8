"""Voiding: the invoice keeps its number and counts no more. What it stated can be invoiced again."""

from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from billing.invoicing.errors import NotPossible
from billing.invoicing.locking import lock_invoices
from billing.models import Invoice, LateUsage


@transaction.atomic
def void_invoice(pk: UUID, *, reason: str, now: datetime | None = None) -> Invoice:
    """Void a finalised invoice or credit note, with the reason. The next closing makes a new draft of an invoice's
    period. Raises NotPossible for a draft, a voided one, and one that a credit note stands on."""
    if not reason.strip():
        raise NotPossible("an invoice is voided with a reason")
    tenant = Invoice.objects.values_list("tenant_id", flat=True).get(pk=pk)
    lock_invoices(tenant)
    invoice = Invoice.objects.select_for_update().get(pk=pk)
    if not invoice.is_finalised:
        raise NotPossible(f"{invoice} is {invoice.status}: only a finalised one can be voided")
    note = invoice.credit_notes.exclude(status=Invoice.Status.VOIDED).first()
    if note is not None:
        raise NotPossible(f"credit note {note} stands on {invoice}: void that first")
    invoice.status, invoice.voided_at = Invoice.Status.VOIDED, now or timezone.now()
    invoice.void_reason = reason.strip()[:200]
    invoice.save(force_update=True, update_fields=["status", "voided_at", "void_reason"])
    LateUsage.objects.filter(invoice=invoice).update(invoice=None)
    return invoice
