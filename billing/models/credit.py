from decimal import Decimal

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q, Sum
from django.utils import timezone

from billing.amounts import whole_units
from headrace_core.currencies import check_currency
from tenants.models import Tenant


class Credit(models.Model):
    """An amount, before tax, that coming invoices of this currency are reduced by until it is used up."""

    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="+")
    amount = models.DecimalField(max_digits=20, decimal_places=3, validators=[MinValueValidator(Decimal("0.001"))])
    currency = models.CharField(max_length=3, validators=[check_currency])
    reason = models.CharField(max_length=200)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("created_at", "id")
        constraints = [models.CheckConstraint(condition=Q(amount__gt=0), name="billing_credit_amount")]

    def __str__(self) -> str:
        return f"{self.amount} {self.currency} for {self.tenant_id}: {self.reason}"

    def clean(self) -> None:
        super().clean()
        if self.tenant_id and self.currency != self.tenant.currency:
            raise ValidationError(
                {"currency": f"The tenant is invoiced in {self.tenant.currency}: it would not be used."}
            )
        if self.amount is not None and self.currency and self.amount != whole_units(self.amount, self.currency):
            raise ValidationError(
                {"amount": f"{self.currency} has no such small units: an invoice could not use them."}
            )

    @property
    def remaining(self) -> Decimal:
        """What finalised invoices have not used. A draft uses nothing yet; a voided one gave it back."""
        applied = self.lines.filter(invoice__status="finalised").aggregate(sum=Sum("amount", default=Decimal(0)))
        used: Decimal = applied["sum"]
        return Decimal(self.amount) + used
