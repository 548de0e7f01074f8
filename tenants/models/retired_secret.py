from django.db import models

from tenants.models.api_key import ApiKey
from tenants.models.tenant import Tenant


class RetiredSecret(models.Model):
    """A secret that a key had before it was rotated, and that opens the door until `until` beside the new one.

    What is done with it is the key's: its limits, its budgets, its records.
    """

    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="+")
    key = models.ForeignKey(ApiKey, models.CASCADE, related_name="retired")
    digest = models.BinaryField(max_length=32, unique=True, editable=False)
    hint = models.CharField(max_length=4, editable=False)
    until = models.DateTimeField()

    class Meta:
        ordering = ("until",)

    def __str__(self) -> str:
        return f"{self.key_id} \u2026{self.hint}"
