"""What one currency is worth in another, from a day on. Operators write these down; nothing fetches them."""

from decimal import Decimal

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import F, Q

from headrace_core.currencies import check_currency


class ExchangeRate(models.Model):
    """One unit of `base` is `rate` units of `quote` from `day` on, until a later rate of the two."""

    base = models.CharField(max_length=3, validators=[check_currency])
    quote = models.CharField(max_length=3, validators=[check_currency])
    rate = models.DecimalField(max_digits=24, decimal_places=12, validators=[MinValueValidator(Decimal("1e-12"))])
    day = models.DateField("from")

    class Meta:
        ordering = ("base", "quote", "-day")
        constraints = [
            models.UniqueConstraint(fields=["base", "quote", "day"], name="billing_exchangerate_day"),
            models.CheckConstraint(condition=Q(rate__gt=0), name="billing_exchangerate_positive"),
            models.CheckConstraint(condition=~Q(base=F("quote")), name="billing_exchangerate_two"),
        ]

    def __str__(self) -> str:
        return f"{self.base}/{self.quote} {self.day}"

    def clean(self) -> None:
        if self.base and self.base == self.quote:
            raise ValidationError({"quote": "A currency is worth itself: name another."})
