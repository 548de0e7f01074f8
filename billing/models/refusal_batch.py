from django.db import models
from django.db.models.functions import Now


class RefusalBatch(models.Model):
    """The name of a batch whose counts are in RefusedHour."""

    name = models.TextField(primary_key=True)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ("view",)
        indexes = [models.Index(fields=["at"], name="billing_refusalbatch_at")]

    def __str__(self) -> str:
        return self.name
