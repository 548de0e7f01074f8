from django.db import models
from django.db.models import Q

from tenants.models.limits import CeiledLimits
from tenants.models.quota import Limited
from tenants.models.tenant import Tenant


class ModelLimitsQuerySet(models.QuerySet["ModelLimits"]):
    def of(self, tenant: Tenant | str) -> "ModelLimitsQuerySet":
        return self.filter(tenant=tenant)


class ModelLimits(Limited, CeiledLimits):
    """The limits of a tenant, a project or a key for one model, beside those for all models together."""

    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="model_limits")
    project = models.CharField(max_length=63, blank=True, help_text="A project's name; empty: all of the tenant.")
    key = models.CharField(max_length=12, blank=True, help_text="A key's public id; empty: all.")
    model = models.CharField(max_length=200, help_text="A model's public name.")

    objects = ModelLimitsQuerySet.as_manager()

    class Meta(CeiledLimits.Meta):
        verbose_name = verbose_name_plural = "limits per model"
        ordering = ("tenant", "project", "key", "model")
        constraints = [
            *CeiledLimits.Meta.constraints,
            models.UniqueConstraint(fields=["tenant", "project", "key", "model"], name="tenants_modellimits_scope"),
            models.CheckConstraint(
                condition=~Q(model="") & (Q(project="") | Q(key="")), name="tenants_modellimits_one"
            ),
        ]

    def __str__(self) -> str:
        return f"{'/'.join(filter(None, (self.tenant_id, self.project, self.key)))} {self.model}"
