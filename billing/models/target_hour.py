from django.db import models


class TargetHour(models.Model):
    """UsageHour added up over tenants, by UTC hour: what one target did, kept by the drain in the same transaction.

    All requests count: those cancelled, reaped or incomplete, and shadow copies. `cost` is what tenants were charged,
    in their `currency`. A tenant's hour that begins at half past belongs to the hour in which it begins.
    """

    target = models.TextField()
    model = models.TextField()
    hour = models.DateTimeField()
    currency = models.CharField(max_length=3)
    input_tokens = models.BigIntegerField()
    cached_input_tokens = models.BigIntegerField()
    output_tokens = models.BigIntegerField()
    cost = models.DecimalField(max_digits=36, decimal_places=12)

    class Meta:
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["hour", "target", "model", "currency"], name="billing_targethour_bucket")
        ]
        indexes = [models.Index(fields=["target", "hour"], name="billing_targethour_of_target")]

    def __str__(self) -> str:
        return f"{self.target} {self.hour:%Y-%m-%d %H:%M}"
