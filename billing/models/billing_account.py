from decimal import Decimal

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from billing.models.legal_entity import LegalEntity
from tenants.models import Tenant

_PERCENT = [MinValueValidator(Decimal(0)), MaxValueValidator(Decimal(100))]


class BillingAccount(models.Model):
    """How one tenant is invoiced: by whom, to whom, on what terms. A tenant without one gets drafts, never invoices.

    `minimum_fee` is in the tenant's currency for each period that ends after `since`, whole even for a part of a month.
    """

    tenant = models.OneToOneField(Tenant, models.PROTECT, primary_key=True, related_name="billing_account")
    legal_entity = models.ForeignKey(LegalEntity, models.PROTECT, null=True, blank=True, help_text="Who invoices.")
    name = models.CharField(max_length=200, blank=True, help_text="Whom to invoice; empty: the tenant's name.")
    address = models.TextField(blank=True)
    tax_id = models.CharField(max_length=60, blank=True)
    email = models.EmailField(blank=True)
    reference = models.CharField(max_length=100, blank=True, help_text="The customer's purchase order.")
    tax_rate = models.DecimalField(max_digits=6, decimal_places=3, default=0, validators=_PERCENT, help_text="Percent.")
    discount_percent = models.DecimalField(max_digits=6, decimal_places=3, default=0, validators=_PERCENT)
    minimum_fee = models.DecimalField(
        max_digits=18, decimal_places=3, default=0, validators=[MinValueValidator(Decimal(0))]
    )
    payment_days = models.PositiveSmallIntegerField(default=30)
    since = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("tenant",)
        constraints = [
            models.CheckConstraint(
                condition=Q(tax_rate__range=(0, 100), discount_percent__range=(0, 100), minimum_fee__gte=0),
                name="billing_billingaccount_terms",
            )
        ]

    def __str__(self) -> str:
        return self.tenant_id
