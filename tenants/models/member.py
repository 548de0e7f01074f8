from django.conf import settings
from django.db import models

from tenants.models.quota import Limited
from tenants.models.tenant import Tenant


class Role(models.TextChoices):
    OWNER = "owner"
    ADMIN = "admin"
    DEVELOPER = "developer"
    FINANCE = "finance"
    VIEWER = "viewer"


class MemberQuerySet(models.QuerySet["Member"]):
    def of(self, tenant: Tenant | str) -> "MemberQuerySet":
        return self.filter(tenant=tenant)


class Member(Limited):
    """A person's role in a tenant. One person may belong to several tenants."""

    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="members")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role.choices)

    objects = MemberQuerySet.as_manager()

    class Meta:
        ordering = ("tenant", "user")
        constraints = [
            models.UniqueConstraint(fields=["tenant", "user"], name="tenants_member_tenant_user"),
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="tenants_member_role"),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.tenant_id}"
