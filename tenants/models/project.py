from django.db import models
from django.utils import timezone

from tenants.models.display_names import check_display_name
from tenants.models.limits import CeiledLimits
from tenants.models.names import slug_constraint, slug_field
from tenants.models.tenant import Tenant


class ProjectQuerySet(models.QuerySet["Project"]):
    def of(self, tenant: Tenant | str) -> "ProjectQuerySet":
        return self.filter(tenant=tenant)


class Project(CeiledLimits):
    """A part of a tenant whose keys and use are counted together."""

    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="projects")
    slug = slug_field()
    name = models.CharField(max_length=200, validators=[check_display_name])
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = ProjectQuerySet.as_manager()

    class Meta(CeiledLimits.Meta):
        ordering = ("tenant", "slug")
        constraints = [
            *CeiledLimits.Meta.constraints,
            slug_constraint("slug"),
            models.UniqueConstraint(fields=["tenant", "slug"], name="tenants_project_tenant_slug"),
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id}/{self.slug}"
