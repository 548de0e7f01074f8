"""Budgets, what was changed by hand in one, and who was told of what."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from tenants.models import Tenant
from tenants.models.moments import check_moment, moment_constraint
from tenants.models.names import slug_constraint, slug_field
from tenants.models.quota import Limited

PLACES = 9
# In nano-units twice this, a budget and its increase, are still below 2^63.
LARGEST = Decimal(4 * 10**9)
SMALLEST = Decimal(1).scaleb(-PLACES)
HIGHEST_THRESHOLD, MOST_THRESHOLDS = 1000, 10


class Period(models.TextChoices):
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    TOTAL = "total"


class SetBy(models.TextChoices):
    OPERATOR = "operator"
    TENANT = "tenant"


def _money(help_text: str, *, optional: bool = False) -> "models.DecimalField[Any, Any]":
    bounds = [MinValueValidator(SMALLEST), MaxValueValidator(LARGEST)]
    return models.DecimalField(
        max_digits=19, decimal_places=PLACES, validators=bounds, help_text=help_text, null=optional, blank=optional
    )


def usual_thresholds() -> list[int]:
    return [80, 100]


class BudgetQuerySet(models.QuerySet["Budget"]):
    def of(self, tenant: Tenant | str) -> "BudgetQuerySet":
        return self.filter(tenant=tenant)


class Budget(Limited):
    """How much of the tenant's currency its requests may cost in each period.

    A hard budget refuses what might pass it; a soft one only tells. Whose use it counts, and in which period, never
    changes: another budget has another name. It counts from the beginning of the period in which it is made.
    """

    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="budgets")
    name = slug_field()
    project = models.CharField(max_length=63, blank=True, help_text="A project's name; empty: all of the tenant.")
    key = models.CharField(max_length=12, blank=True, help_text="A key's public id; empty: all.")
    model = models.CharField(max_length=200, blank=True, help_text="A model's public name; empty: all.")
    amount = _money("In the tenant's currency.")
    period = models.CharField(max_length=5, choices=Period.choices, default=Period.MONTH)
    hard = models.BooleanField(default=True, help_text="Refuse what might pass it. A soft budget only tells.")
    enabled = models.BooleanField(default=True)
    set_by = models.CharField(
        max_length=8,
        choices=SetBy.choices,
        default=SetBy.OPERATOR,
        help_text="Whose it is: the tenant's own members change only the tenant's.",
    )
    thresholds = ArrayField(
        models.IntegerField(validators=[MinValueValidator(1), MaxValueValidator(HIGHEST_THRESHOLD)]),
        default=usual_thresholds,
        blank=True,
        size=MOST_THRESHOLDS,
        help_text="Percents of the amount, parted by commas, at which people are told, once a period.",
    )
    extra = _money("A temporary increase, on top of the amount.", optional=True)
    extra_until = models.DateTimeField(
        null=True, blank=True, validators=[check_moment], help_text="When the increase ends."
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = BudgetQuerySet.as_manager()

    class Meta:
        ordering = ("tenant", "name")
        constraints = [
            slug_constraint("name"),
            models.UniqueConstraint(fields=["tenant", "name"], name="billing_budget_tenant_name"),
            # NaN is larger than every number, so the upper bound refuses it too.
            models.CheckConstraint(condition=Q(amount__gt=0, amount__lte=LARGEST), name="billing_budget_amount"),
            models.CheckConstraint(
                condition=Q(extra__isnull=True, extra_until__isnull=True)
                | Q(extra__gt=0, extra__lte=LARGEST, extra_until__isnull=False),
                name="billing_budget_extra",
                violation_error_message="An increase wants an amount and an end.",
            ),
            models.CheckConstraint(condition=Q(period__in=Period.values), name="billing_budget_period"),
            models.CheckConstraint(condition=Q(set_by__in=SetBy.values), name="billing_budget_set_by"),
            moment_constraint("extra_until"),
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id}/{self.name}"

    def clean(self) -> None:
        if (self.extra is None) != (self.extra_until is None):
            raise ValidationError({"extra": "An increase wants an amount and an end."})

    def limit_at(self, at: datetime) -> Decimal:
        """What may be spent, in the tenant's currency."""
        is_raised = self.extra is not None and self.extra_until is not None and at < self.extra_until
        return Decimal(self.amount + self.extra if is_raised else self.amount)


class BudgetAdjustment(models.Model):
    """Money put onto (or, negative, taken off) what a budget's window has spent, by hand. Nothing else changes it."""

    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="+")
    budget = models.ForeignKey(Budget, models.CASCADE, related_name="adjustments")
    window_start = models.DateTimeField()
    nano = models.DecimalField(max_digits=36, decimal_places=0, help_text="In units of 1e-9, signed.")
    reason = models.TextField()
    who = models.TextField()
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = "adjustment"
        ordering = ("-id",)
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.budget}, {self.at:%Y-%m-%d %H:%M} UTC"


class BudgetAlert(models.Model):
    """That a budget's spending passed a threshold in a window: made once, when it was first seen."""

    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="+")
    budget = models.ForeignKey(Budget, models.CASCADE, related_name="alerts")
    window_start = models.DateTimeField()
    threshold = models.IntegerField(help_text="Percent.")
    spent = models.DecimalField(max_digits=28, decimal_places=PLACES)
    amount = models.DecimalField(max_digits=28, decimal_places=PLACES)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = "alert"
        ordering = ("-id",)
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["budget", "window_start", "threshold"], name="billing_budgetalert_once")
        ]

    def __str__(self) -> str:
        return f"{self.budget} at {self.threshold}%"
