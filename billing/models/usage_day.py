from django.db import models

from billing.models.rollup import Rollup
from billing.models.usage_record import UsageQuerySet


class UsageDay(Rollup):
    """UsageHour added up by the tenant's local day, kept by the drain in the same transaction.

    `day` is the instant at which the local day began in which the hour begins, in the zone that the tenant's period has
    at that instant: where a period in another zone begins within a day, it begins a day of its own.
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
