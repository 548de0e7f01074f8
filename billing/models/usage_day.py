from django.db import models

from billing.models.rollup import Rollup
from billing.models.usage_record import UsageQuerySet


class UsageDay(Rollup):
    """UsageHour added up by the tenant's local day, kept by the drain in the same transaction.

    `day` is the instant at which that day began, in the zone that the tenant's period has then; the first day of a
    period in another zone begins with the period (billing/periods.py). So no day is of two periods.
    """

    day = models.DateTimeField()

    objects = UsageQuerySet["UsageDay"].as_manager()

    class Meta:
        verbose_name = "day"
        ordering = ("-day", "tenant")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "day", "project", "key", "model", "target", "kind", "currency", "price"],
                name="billing_usageday_bucket",
            )
        ]

    def __str__(self) -> str:
        return f"{self.tenant} {self.day:%Y-%m-%d %H:%M}"
