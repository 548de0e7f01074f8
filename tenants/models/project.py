from decimal import Decimal

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from tenants.models.display_names import check_display_name
from tenants.models.limits import CeiledLimits
from tenants.models.names import slug_constraint, slug_field
from tenants.models.quota import Limited
from tenants.models.tenant import LEAST_WEIGHT, MOST_WEIGHT, Tenant


class ProjectQuerySet(models.QuerySet["Project"]):
    def of(self, tenant: Tenant | str) -> "ProjectQuerySet":
        return self.filter(tenant=tenant)


class Project(Limited, CeiledLimits):
    """A part of a tenant whose keys and use are counted together."""

    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="projects")
    slug = slug_field()
    name = models.CharField(max_length=200, validators=[check_display_name])
    weight = models.DecimalField(
        max_digits=6,
        decimal_places=2,
        default=Decimal(1),
        db_default=Decimal(1),
        validators=[MinValueValidator(LEAST_WEIGHT), MaxValueValidator(MOST_WEIGHT)],
        help_text="Its share of what its tenant gets of busy replicas, against the tenant's other projects.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = ProjectQuerySet.as_manager()

    class Meta(CeiledLimits.Meta):
        ordering = ("tenant", "slug")
        constraints = [
            *CeiledLimits.Meta.constraints,
            slug_constraint("slug"),
            models.CheckConstraint(
                condition=Q(weight__gte=LEAST_WEIGHT, weight__lte=MOST_WEIGHT), name="tenants_project_weight"
            ),
            models.UniqueConstraint(fields=["tenant", "slug"], name="tenants_project_tenant_slug"),
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id}/{self.slug}"
