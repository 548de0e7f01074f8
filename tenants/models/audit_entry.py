from django.db import models
from django.db.models.functions import Now


class Action(models.TextChoices):
    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"


class AuditEntryQuerySet(models.QuerySet["AuditEntry"]):
    def of(self, tenant: str) -> "AuditEntryQuerySet":
        return self.filter(tenant=tenant)


class AuditEntry(models.Model):
    """Who changed what, from what to what. Written by database triggers (core's audit.py says who acts), never changed.

    Secrets appear only as "set" or "changed". `tenant` is empty for what belongs to the platform.
    """

    at = models.DateTimeField(db_default=Now())
    who = models.TextField()
    origin = models.TextField(help_text="Where from: an address, or the command.")
    tenant = models.TextField(blank=True)
    action = models.CharField(max_length=8, choices=Action.choices)
    subject = models.TextField(help_text="Table and name of the changed row.")
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)

    objects = AuditEntryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "audit trail"
        ordering = ("-id",)
        default_permissions = ("view",)
        indexes = [models.Index(fields=["tenant", "-id"], name="tenants_audit_tenant")]

    def __str__(self) -> str:
        return f"{self.who} {self.action} {self.subject}"
