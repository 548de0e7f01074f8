"""Where alerts are posted to, and what became of each."""

from django.core.validators import URLValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from billing.models.budget import BudgetAlert
from tenants.models import Tenant
from tenants.models.quota import Limited


class Delivery(models.TextChoices):
    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"


class WebhookEndpoint(Limited):
    """An address of a tenant's that is told of alerts. `secret` is sealed, and signs what is sent."""

    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="webhooks")
    url = models.CharField(max_length=500, validators=[URLValidator(schemes=["https", "http"])])
    secret = models.BinaryField(editable=False)
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        verbose_name = "webhook"
        ordering = ("tenant", "id")
        constraints = [models.UniqueConstraint(fields=["tenant", "url"], name="billing_webhookendpoint_tenant_url")]

    def __str__(self) -> str:
        return self.url


class Notice(models.Model):
    """One alert on its way to one place: an endpoint, or an address. Tried with growing pauses, then given up.

    Without an alert it is a test of the endpoint, tried once.
    """

    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="+")
    alert = models.ForeignKey(BudgetAlert, models.CASCADE, null=True, blank=True, related_name="notices")
    endpoint = models.ForeignKey(WebhookEndpoint, models.CASCADE, null=True, blank=True, related_name="notices")
    email = models.CharField(max_length=254, blank=True)
    state = models.CharField(max_length=9, choices=Delivery.choices, default=Delivery.WAITING)
    attempts = models.IntegerField(default=0)
    next_at = models.DateTimeField(default=timezone.now)
    last_at = models.DateTimeField(null=True, blank=True)
    answer = models.TextField(blank=True, help_text="What the last try came to.")

    class Meta:
        ordering = ("-id",)
        default_permissions = ("view", "change")
        constraints = [
            models.UniqueConstraint(
                fields=["alert", "endpoint", "email"],
                name="billing_notice_once",
                condition=Q(alert__isnull=False),
                nulls_distinct=False,
            ),
            # So that nobody's address is flooded: one test of an endpoint at a time.
            models.UniqueConstraint(
                fields=["endpoint"], name="billing_notice_one_test", condition=Q(alert__isnull=True, state="waiting")
            ),
            models.CheckConstraint(
                condition=Q(endpoint__isnull=False, email="") | (Q(endpoint__isnull=True) & ~Q(email="")),
                name="billing_notice_place",
            ),
        ]
        indexes = [
            models.Index(fields=["next_at"], name="billing_notice_waiting", condition=Q(state="waiting")),
        ]

    def __str__(self) -> str:
        return f"{self.alert or 'test'} to {self.email or self.endpoint}"
