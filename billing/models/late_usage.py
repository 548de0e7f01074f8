from django.db import models

from billing.models.invoice import Invoice


class LateUsage(models.Model):
    """A record or correction that reached the ledger after its period's invoice was finalised. A trigger on the ledger
    writes it, in the transaction of the row itself; `invoice` is the one that states it as an adjustment.
    """

    request_id = models.UUIDField()
    part = models.SmallIntegerField()
    admitted_at = models.DateTimeField()
    tenant = models.TextField()
    arrived_at = models.DateTimeField()
    invoice = models.ForeignKey(Invoice, models.PROTECT, null=True, related_name="late_usage")

    class Meta:
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["request_id", "part"], name="billing_lateusage_row")]
        indexes = [models.Index(fields=["tenant", "admitted_at"], name="billing_lateusage_tenant")]

    def __str__(self) -> str:
        return f"{self.request_id}/{self.part}"
