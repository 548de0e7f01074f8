from datetime import datetime

from django.db import models
from django.db.models import Q
from django.utils import timezone

from tenants.models.member import Role
from tenants.models.quota import Limited
from tenants.models.tenant import Tenant


class InvitationQuerySet(models.QuerySet["Invitation"]):
    def of(self, tenant: Tenant | str) -> "InvitationQuerySet":
        return self.filter(tenant=tenant)

    def waiting(self) -> "InvitationQuerySet":
        return self.filter(accepted_at=None, withdrawn_at=None)


class Invitation(Limited):
    """An offer to join a tenant in a role, made to an address. Whoever has its link may take it once, within a week.

    The link is never stored: `digest` finds it (tenants.invitations).
    """

    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="invitations")
    email = models.EmailField()
    role = models.CharField(max_length=16, choices=Role.choices)
    digest = models.BinaryField(max_length=32, unique=True, editable=False)
    invited_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True, editable=False)
    withdrawn_at = models.DateTimeField(null=True, editable=False)

    objects = InvitationQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at",)
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "email"],
                condition=Q(accepted_at=None, withdrawn_at=None),
                name="tenants_invitation_one_waiting",
            ),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="tenants_invitation_role"),
        ]

    def __str__(self) -> str:
        return f"{self.email} to {self.tenant_id}"

    def is_open(self, now: datetime) -> bool:
        return self.accepted_at is None and self.withdrawn_at is None and now < self.expires_at
