from django.db import models
from django.db.models import Q, Sum

from billing.models.usage_record import UsageQuerySet
from billing.usage import PRICING

_TOKENS = {"input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens"}


class UsageHour(models.Model):
    """Sums of records and corrections by the tenant's local hour, kept by the drain in the transaction of their rows.

    `hour` is the instant at which that local hour began. A correction adds its tokens and cost to the hour in which its
    request was admitted, and counts in `corrections`, not in `requests`. `cost` leaves out the `unpriced`; being of one
    price, it is exactly what the sums of tokens cost (pricing.py).
    """

    tenant = models.TextField()
    hour = models.DateTimeField()
    project = models.TextField()
    key = models.TextField()
    model = models.TextField()
    target = models.TextField()
    kind = models.TextField()
    currency = models.CharField(max_length=3)
    price = models.TextField(default="", help_text="The version of the price; empty: unpriced.")
    requests = models.BigIntegerField()
    errors = models.BigIntegerField(help_text="Status error, incomplete or reaped.")
    cancelled = models.BigIntegerField()
    abandoned = models.BigIntegerField()
    estimated = models.BigIntegerField(help_text="Requests whose tokens the upstream did not report.")
    unpriced = models.BigIntegerField(help_text="Requests without a price; negative: so many were given one later.")
    corrections = models.BigIntegerField()
    input_tokens = models.BigIntegerField()
    cached_input_tokens = models.BigIntegerField()
    output_tokens = models.BigIntegerField()
    reasoning_tokens = models.BigIntegerField()
    cost = models.DecimalField(max_digits=24, decimal_places=12)
    cost_nano = models.BigIntegerField(default=0, help_text="What budgets were charged, in units of 1e-9.")

    objects = UsageQuerySet["UsageHour"].as_manager()

    class Meta:
        verbose_name = "hour"
        ordering = ("-hour", "tenant")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "hour", "project", "key", "model", "target", "kind", "currency", "price"],
                name="billing_usagehour_bucket",
            )
        ]
        indexes = [models.Index(fields=["-hour"], name="billing_usagehour_hour")]

    def __str__(self) -> str:
        return f"{self.tenant} {self.hour:%Y-%m-%d %H:%M}"

    @staticmethod
    def total(name: str) -> Sum:
        """The sum of a column over any hours. The tokens of rows that price others late are those others'."""
        return Sum(name, filter=~Q(kind=PRICING) if name in _TOKENS else None, default=0)
