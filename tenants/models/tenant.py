from decimal import Decimal

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from headrace_core.currencies import check_currency
from headrace_core.time_zones import check_time_zone
from tenants.models.display_names import check_display_name
from tenants.models.limits import Limits
from tenants.models.names import slug_constraint, slug_field

LEAST_WEIGHT, MOST_WEIGHT = Decimal("0.1"), Decimal(100)


class Tenant(Limits):
    """A customer of the platform: the owner of projects, keys, usage and invoices. Its primary key is its slug."""

    slug = slug_field(primary_key=True)
    name = models.CharField(max_length=200, validators=[check_display_name])
    currency = models.CharField(max_length=3, default="USD", validators=[check_currency])
    time_zone = models.CharField(max_length=64, default="UTC", validators=[check_time_zone])
    weight = models.DecimalField(
        max_digits=6,
        decimal_places=2,
        default=Decimal(1),
        validators=[MinValueValidator(LEAST_WEIGHT), MaxValueValidator(MOST_WEIGHT)],
        help_text="Its share of busy replicas against others': twice the weight is twice the tokens while both wait.",
    )
    cached_input_weight = models.FloatField(
        default=1,
        validators=[MinValueValidator(0), MaxValueValidator(1)],
        help_text="How much of a cached input token counts in input tokens a minute, once it is known to be cached.",
    )
    suspended_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta(Limits.Meta):
        ordering = ("slug",)
        constraints = [
            *Limits.Meta.constraints,
            slug_constraint("slug"),
            # NaN is larger than every number.
            models.CheckConstraint(
                condition=Q(cached_input_weight__gte=0, cached_input_weight__lte=1), name="tenants_tenant_cached_weight"
            ),
            models.CheckConstraint(condition=Q(currency__regex=r"^[A-Z]{3}$"), name="tenants_tenant_currency"),
            models.CheckConstraint(
                condition=Q(weight__gte=LEAST_WEIGHT, weight__lte=MOST_WEIGHT), name="tenants_tenant_weight"
            ),
        ]

    def __str__(self) -> str:
        return self.slug

    @property
    def is_suspended(self) -> bool:
        return self.suspended_at is not None
