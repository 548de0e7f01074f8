from datetime import datetime

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import models as db
from django.db.models import Q
from django.utils import timezone

from tenants.models.display_names import check_display_name
from tenants.models.limits import CeiledLimits
from tenants.models.moments import check_moment, moment_constraint
from tenants.models.project import Project
from tenants.models.quota import Limited
from tenants.models.tenant import Tenant


class Priority(db.TextChoices):
    INTERACTIVE = "interactive"
    STANDARD = "standard"
    BATCH = "batch"


class ApiKeyQuerySet(db.QuerySet["ApiKey"]):
    def of(self, tenant: Tenant | str) -> "ApiKeyQuerySet":
        return self.filter(tenant=tenant)


class ApiKey(Limited, CeiledLimits):
    """What an app authenticates with. The text of the key is never stored: `digest` finds it (tenants.keys)."""

    public_id = db.CharField(primary_key=True, max_length=12, editable=False)
    tenant = db.ForeignKey(Tenant, db.PROTECT, related_name="keys")
    project = db.ForeignKey(Project, db.PROTECT, related_name="keys")
    name = db.CharField(max_length=100, validators=[check_display_name])
    digest = db.BinaryField(max_length=32, unique=True, editable=False)
    hint = db.CharField(max_length=4, editable=False, help_text="The last four characters of the key.")
    models = ArrayField(
        db.CharField(max_length=200),
        default=list,
        blank=True,
        help_text="Public names of the models the key may call; empty: all.",
    )
    priority = db.CharField(max_length=16, choices=Priority.choices, default=Priority.STANDARD)
    expires_at = db.DateTimeField(null=True, blank=True, validators=[check_moment])
    revoked_at = db.DateTimeField(null=True, blank=True, editable=False)
    created_at = db.DateTimeField(default=timezone.now, editable=False)
    last_used_at = db.DateTimeField(null=True, blank=True, editable=False)

    objects = ApiKeyQuerySet.as_manager()

    class Meta(CeiledLimits.Meta):
        verbose_name = "API key"
        ordering = ("project", "name")
        constraints = [
            *CeiledLimits.Meta.constraints,
            db.UniqueConstraint(fields=["project", "name"], name="tenants_apikey_project_name"),
            db.CheckConstraint(condition=Q(priority__in=Priority.values), name="tenants_apikey_priority"),
            db.CheckConstraint(condition=Q(public_id__regex="^[0-9A-Za-z]{12}$"), name="tenants_apikey_public_id"),
            moment_constraint("expires_at"),
        ]

    def __str__(self) -> str:
        return f"{self.project}/{self.name}"

    def clean(self) -> None:
        if self.project_id and self.tenant_id and self.project.tenant_id != self.tenant_id:
            raise ValidationError({"project": "The project belongs to another tenant."})

    @property
    def is_revoked(self) -> bool:
        return self.revoked_at is not None

    def is_live(self, now: datetime) -> bool:
        """Whether the key itself opens the door at `now`; its tenant may still be suspended."""
        return not self.is_revoked and (self.expires_at is None or now < self.expires_at)
