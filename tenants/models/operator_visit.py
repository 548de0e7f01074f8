from django.db import models

from tenants.models.names import slug_field


class OperatorVisit(models.Model):
    """An operator looked at a tenant's portal in this hour: written for the audit trail to say so."""

    tenant = slug_field()
    operator = models.CharField(max_length=150)
    hour = models.DateTimeField()

    class Meta:
        ordering = ("-hour",)
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["tenant", "operator", "hour"], name="tenants_operatorvisit_once_an_hour")
        ]

    def __str__(self) -> str:
        return f"{self.operator} at {self.tenant}"
