"""Invoices and credit notes: drafts, which are recomputed freely, and finalised ones, which nothing changes."""

import uuid
from decimal import Decimal

from django.db import models
from django.db.models import Q
from django.utils import timezone

from billing.models.legal_entity import LegalEntity
from tenants.models import Tenant


class InvoiceQuerySet(models.QuerySet["Invoice"]):
    def of(self, tenant: Tenant | str) -> "InvoiceQuerySet":
        return self.filter(tenant_id=tenant.pk if isinstance(tenant, Tenant) else tenant)

    def stating_usage(self) -> "InvoiceQuerySet":
        """Those whose lines count as invoiced usage: finalised, not voided, no credit notes."""
        return self.filter(kind=Invoice.Kind.INVOICE, status=Invoice.Status.FINALISED)


class Invoice(models.Model):
    """One document for one tenant, period and currency. `period` is the first day of the month that it is called by;
    [`period_start`, `period_end`) are the instants. `content` is all it states, copied when finalised; `content_hash`
    is the SHA-256 of its canonical JSON (invoicing/content.py). Amounts are whole minor units of `currency`.
    """

    class Kind(models.TextChoices):
        INVOICE = "invoice"
        CREDIT_NOTE = "credit_note"

    class Status(models.TextChoices):
        DRAFT = "draft"
        FINALISED = "finalised"
        VOIDED = "voided"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="+")
    kind = models.CharField(max_length=16, choices=Kind.choices, default=Kind.INVOICE)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.DRAFT)
    currency = models.CharField(max_length=3)
    period = models.DateField()
    period_start = models.DateTimeField()
    period_end = models.DateTimeField()
    time_zone = models.CharField(max_length=64)
    legal_entity = models.ForeignKey(LegalEntity, models.PROTECT, null=True)
    sequence = models.BigIntegerField(null=True)
    number = models.CharField(max_length=40, null=True)  # noqa: DJ001  None: a draft has no number
    of_invoice = models.ForeignKey("self", models.PROTECT, null=True, related_name="credit_notes")
    net = models.DecimalField(max_digits=36, decimal_places=3, default=0)
    tax = models.DecimalField(max_digits=36, decimal_places=3, default=0)
    total = models.DecimalField(max_digits=36, decimal_places=3, default=0)
    content = models.JSONField(null=True)
    content_hash = models.CharField(max_length=64, blank=True)
    drafted_at = models.DateTimeField(default=timezone.now)
    finalised_at = models.DateTimeField(null=True)
    voided_at = models.DateTimeField(null=True)
    void_reason = models.CharField(max_length=200, blank=True)

    objects = InvoiceQuerySet.as_manager()

    class Meta:
        ordering = ("-period_start", "tenant", "-sequence")
        default_permissions = ("view", "change")
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "period_start", "period_end", "currency"],
                condition=Q(kind="invoice") & ~Q(status="voided"),
                name="billing_invoice_once",
            ),
            models.UniqueConstraint(fields=["legal_entity", "sequence"], name="billing_invoice_series"),
            models.UniqueConstraint(fields=["number"], name="billing_invoice_number"),
            models.CheckConstraint(condition=Q(period_start__lt=models.F("period_end")), name="billing_invoice_period"),
            models.CheckConstraint(
                condition=Q(total=models.F("net") + models.F("tax")), name="billing_invoice_adds_up"
            ),
            models.CheckConstraint(
                condition=Q(status="draft", sequence__isnull=True, number__isnull=True, finalised_at__isnull=True)
                | (
                    Q(sequence__isnull=False, number__isnull=False, finalised_at__isnull=False)
                    & Q(legal_entity__isnull=False, content__isnull=False, content_hash__regex="^[0-9a-f]{64}$")
                ),
                name="billing_invoice_whole",
            ),
            models.CheckConstraint(
                condition=Q(status="voided", voided_at__isnull=False) | (~Q(status="voided") & Q(voided_at=None)),
                name="billing_invoice_voided",
            ),
            models.CheckConstraint(
                condition=Q(kind="credit_note", of_invoice__isnull=False) | Q(kind="invoice", of_invoice__isnull=True),
                name="billing_invoice_credited",
            ),
        ]
        indexes = [models.Index(fields=["tenant", "period_start"], name="billing_invoice_tenant")]

    def __str__(self) -> str:
        return self.number or f"draft {self.tenant_id} {self.label}"

    @property
    def label(self) -> str:
        """The period's name: 2026-03."""
        return f"{self.period:%Y-%m}"

    @property
    def is_draft(self) -> bool:
        return self.status == self.Status.DRAFT

    @property
    def is_finalised(self) -> bool:
        return self.status == self.Status.FINALISED

    @property
    def is_credit_note(self) -> bool:
        return self.kind == self.Kind.CREDIT_NOTE


class InvoiceLine(models.Model):
    """One line. Of usage and adjustments, `quantity` tokens of a class at `unit_price` per million are `exact`;
    `amount` is that, rounded once. `period` is the month of the use: of an adjustment one before the invoice's.
    """

    class Kind(models.TextChoices):
        USAGE = "usage"
        ADJUSTMENT = "adjustment"
        DISCOUNT = "discount"
        MINIMUM_FEE = "minimum_fee"
        CREDIT = "credit"
        TAX = "tax"

    class TokenClass(models.TextChoices):
        UNCACHED = "uncached"
        CACHED = "cached"
        OUTPUT = "output"

    invoice = models.ForeignKey(Invoice, models.CASCADE, related_name="lines")
    position = models.PositiveIntegerField()
    kind = models.CharField(max_length=16, choices=Kind.choices)
    period = models.DateField()
    description = models.CharField(max_length=500)
    project = models.TextField(blank=True)
    model = models.TextField(blank=True)
    token_class = models.CharField(max_length=16, choices=TokenClass.choices, blank=True)
    price = models.TextField(blank=True, help_text="The version of the price.")
    quantity = models.BigIntegerField(null=True)
    unit_price = models.DecimalField(max_digits=18, decimal_places=6, null=True, help_text="Per million tokens.")
    exact = models.DecimalField(max_digits=48, decimal_places=24)
    amount = models.DecimalField(max_digits=36, decimal_places=3)
    credit = models.ForeignKey("billing.Credit", models.PROTECT, null=True, related_name="lines")

    class Meta:
        ordering = ("invoice", "position")
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["invoice", "position"], name="billing_invoiceline_position")]

    def __str__(self) -> str:
        return f"{self.invoice} line {self.position}"

    @property
    def has_records(self) -> bool:
        return self.kind in {self.Kind.USAGE, self.Kind.ADJUSTMENT}

    @property
    def is_negative(self) -> bool:
        return self.amount < Decimal(0)
