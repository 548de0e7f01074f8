"""Operators add, change and remove a tenant's webhooks and limits for a model by the verbs that its members use."""

import pytest
from django.test import Client
from django.urls import reverse

from billing.models import WebhookEndpoint
from headrace_core import sealing
from tenants.models import ModelLimits
from tenants.tests.cast import make_tenant

pytestmark = pytest.mark.django_db


def test_it_refuses_a_webhook_that_nothing_could_be_posted_to(alice: Client) -> None:
    make_tenant()
    page, form = reverse("admin:billing_webhookendpoint_add"), {"tenant": "acme", "enabled": "on"}
    answer = alice.post(page, form | {"url": "https://127.0.0.1/hook"}).content.decode()
    assert "errorlist" in answer
    assert not WebhookEndpoint.objects.exists()
    shown = alice.post(page, form | {"url": "https://hooks.test/"}, follow=True).content.decode()
    webhook = WebhookEndpoint.objects.get()
    assert sealing.open(webhook.secret) in shown
    alice.post(
        reverse("admin:billing_webhookendpoint_change", args=[webhook.pk]), form | {"url": webhook.url, "enabled": ""}
    )
    webhook.refresh_from_db()
    assert not webhook.enabled


def test_it_adds_changes_and_removes_limits_for_a_model(alice: Client) -> None:
    make_tenant()
    form = {"tenant": "acme", "model": "demo", "project": "", "key": "", "concurrency": "3"}
    alice.post(reverse("admin:tenants_modellimits_add"), form)
    row = ModelLimits.objects.get()
    page = reverse("admin:tenants_modellimits_change", args=[row.pk])
    alice.post(page, {"concurrency": "", "requests_per_minute": "7"})
    row.refresh_from_db()
    assert row.limits == row.ceilings == {"requests_per_minute": 7}
    alice.post(reverse("admin:tenants_modellimits_delete", args=[row.pk]), {"post": "yes"})
    assert not ModelLimits.objects.exists()
