"""How many rows of a kind one tenant may have: the installation's own figures, and operators' exceptions."""

from django.db import models
from django.db.models import Q


class Quota(models.Model):
    """At most `most` rows of what `name` says (tenants.quotas.DEFAULTS). An empty tenant is every one without its own.

    The database's triggers hold it (headrace_quota): what runs in parallel, or past the screens, cannot pass it.
    """

    tenant = models.CharField(max_length=63, blank=True)
    name = models.CharField(max_length=32)
    most = models.BigIntegerField()

    class Meta:
        ordering = ("tenant", "name")
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="tenants_quota_tenant_name"),
            models.CheckConstraint(condition=Q(most__gte=0), name="tenants_quota_most"),
        ]

    def __str__(self) -> str:
        return f"{self.tenant or 'every tenant'}: {self.most} {self.name}"
