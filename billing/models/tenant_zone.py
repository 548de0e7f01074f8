from django.db import models


class TenantZone(models.Model):
    """The time zone of a tenant's periods from the one called `month` on, which begins at `since`. A trigger on tenants
    writes it: the first row of a tenant counts from the beginning of time, a change from the next period.
    """

    tenant = models.TextField()
    month = models.DateField()
    since = models.DateTimeField()
    time_zone = models.TextField()

    class Meta:
        ordering = ("tenant", "month")
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["tenant", "month"], name="billing_tenantzone_month")]
        indexes = [models.Index(fields=["tenant", "since"], name="billing_tenantzone_since")]

    def __str__(self) -> str:
        return f"{self.tenant} {self.time_zone} from {self.month:%Y-%m}"
