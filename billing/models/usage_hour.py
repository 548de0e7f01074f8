from django.db import models

from billing.models.rollup import Rollup
from billing.models.usage_record import UsageQuerySet


class UsageHour(Rollup):
    """Sums by the tenant's local hour, kept by the drain in the transaction of their rows.

    `hour` is the instant at which that local hour began; the first one of a period in another zone begins with the
    period (billing/periods.py), so that no hour is of two periods.
    """

    hour = models.DateTimeField()

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
