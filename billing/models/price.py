"""Prices: what a model's tokens cost, from when, for whom. One in force is never changed, only superseded."""

from datetime import timedelta
from decimal import Decimal

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models, transaction
from django.db.models import Q
from django.utils import timezone

from billing.pricing import PLACES, Rates
from headrace_core.config_lock import lock_configuration
from headrace_core.currencies import check_currency

DEAREST = Decimal(10**9)
MEANT_AS_NOW = timedelta(minutes=1)
# How long before it begins a price is fixed, and how long after it is set one that takes another's place begins.
LEAD = timedelta(seconds=2)


BOUNDS = [MinValueValidator(Decimal(0)), MaxValueValidator(DEAREST)]


def _rate(what: str) -> "models.DecimalField[Decimal, Decimal]":
    return models.DecimalField(
        max_digits=18, decimal_places=PLACES, validators=BOUNDS, help_text=f"Per million {what}."
    )


class PriceQuerySet(models.QuerySet["Price"]):
    def in_force(self) -> "PriceQuerySet":
        return self.filter(effective_from__lte=timezone.now())


class Price(models.Model):
    """What tokens of `model` cost from `effective_from` on, in units of `currency` per million.

    An empty `target` is any; an empty `tenant` is all. Of those that fit a request, the one for tenant and target
    counts before the one for the tenant, that before the target's, that before the model's; of these the latest that
    is effective when the request is admitted. A price counts only for tenants of its currency.
    """

    version = models.CharField(max_length=220, unique=True, editable=False, blank=True)
    model = models.CharField(max_length=200, help_text="The public name of the model.")
    target = models.CharField(max_length=63, blank=True, help_text="A pool or provider; empty: whichever serves.")
    tenant = models.CharField(max_length=63, blank=True, help_text="For one tenant alone; empty: for all.")
    currency = models.CharField(max_length=3, default="USD", validators=[check_currency])
    input = _rate("uncached input tokens")
    cached_input = _rate("input tokens found in the prefix cache")
    output = _rate("output tokens")
    cache_hit = models.DecimalField(
        max_digits=18,
        decimal_places=PLACES,
        null=True,
        blank=True,
        validators=BOUNDS,
        help_text="Per answer out of the response cache; empty: by its tokens.",
    )
    effective_from = models.DateTimeField(default=timezone.now)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = PriceQuerySet.as_manager()

    class Meta:
        ordering = ("model", "target", "tenant", "currency", "-effective_from")
        constraints = [
            models.UniqueConstraint(
                fields=["model", "target", "tenant", "currency", "effective_from"],
                name="billing_price_scope",
                violation_error_message="There is a price from this moment on already.",
            ),
            models.CheckConstraint(
                condition=Q(input__gte=0, cached_input__gte=0, output__gte=0)
                & Q(input__lte=DEAREST, cached_input__lte=DEAREST, output__lte=DEAREST)
                & (Q(cache_hit__isnull=True) | Q(cache_hit__gte=0, cache_hit__lte=DEAREST)),
                name="billing_price_not_negative",
            ),
            models.CheckConstraint(condition=Q(currency__regex=r"^[A-Z]{3}$"), name="billing_price_currency"),
            models.CheckConstraint(condition=~Q(model="") & ~Q(version=""), name="billing_price_named"),
        ]

    def __str__(self) -> str:
        return self.version

    def save(self, *args: object, **kwargs: object) -> None:
        """A new price is given its version: the model's name and a running number."""
        with transaction.atomic():
            if not self.version:
                lock_configuration()  # two writers at once would take one number
                known = Price.objects.filter(model=self.model).values_list("version", flat=True)
                self.version = f"{self.model}@{1 + max((_number(version) for version in known), default=0)}"
            super().save(*args, **kwargs)  # type: ignore[arg-type]

    @property
    def rates(self) -> Rates:
        return Rates(Decimal(self.input), Decimal(self.cached_input), Decimal(self.output))

    @property
    def is_in_force(self) -> bool:
        return not self._state.adding and self.effective_from <= timezone.now()

    @property
    def is_fixed(self) -> bool:
        """Whether its time has come or is about to: it can then only be superseded."""
        return not self._state.adding and self.effective_from <= timezone.now() + LEAD


def _number(version: str) -> int:
    tail = version.rpartition("@")[2]
    return int(tail) if tail.isdecimal() else 0
