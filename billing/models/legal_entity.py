from django.core.validators import MinValueValidator, RegexValidator
from django.db import models

from tenants.models.names import slug_constraint, slug_field

check_prefix = RegexValidator(r"\A[A-Za-z0-9][A-Za-z0-9./_-]{0,19}\Z", "1 to 20 letters, digits, dots and dashes.")


class LegalEntity(models.Model):
    """The company that issues invoices. Its numbers are a series without gaps: `next_number`, taken under a row lock.

    `address` and `company_data` (register, managers, bank account) are lines of text, printed as they are.
    """

    slug = slug_field(primary_key=True)
    name = models.CharField(max_length=200)
    address = models.TextField(blank=True)
    tax_id = models.CharField(max_length=60, blank=True)
    email = models.EmailField(blank=True)
    company_data = models.TextField(blank=True, help_text="Lines for the foot of the page: register, bank account.")
    invoice_prefix = models.CharField(
        max_length=20, unique=True, validators=[check_prefix], help_text="What each number begins with: ACME-"
    )
    next_number = models.BigIntegerField(default=1, validators=[MinValueValidator(1)])

    class Meta:
        ordering = ("slug",)
        verbose_name_plural = "legal entities"
        constraints = [
            slug_constraint("slug"),
            models.CheckConstraint(condition=models.Q(next_number__gte=1), name="billing_legalentity_next_number"),
        ]

    def __str__(self) -> str:
        return self.name

    def number(self, sequence: int) -> str:
        """How the invoice of this place in the series is called: ACME-000017."""
        return f"{self.invoice_prefix}{sequence:06d}"
