"""Operators add and change tenants, projects and members."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from tenants.models import Member, Project, Tenant

pytestmark = pytest.mark.django_db
TENANT = {"slug": "acme", "name": "Acme", "currency": "EUR", "time_zone": "Europe/Berlin", "weight": "2"}


def test_an_operator_adds_and_changes_a_tenant_with_its_project_and_member(alice: Client) -> None:
    form = TENANT | {"cached_input_weight": "1"}
    alice.post(reverse("admin:tenants_tenant_add"), form | {"concurrency": "9"})
    alice.post(reverse("admin:tenants_tenant_change", args=["acme"]), form | {"name": "Acme Inc"})
    tenant = Tenant.objects.get()
    assert (tenant.name, tenant.currency, tenant.time_zone, tenant.limits) == ("Acme Inc", "EUR", "Europe/Berlin", {})

    project = {"tenant": "acme", "slug": "web", "name": "Web", "weight": "1"}
    alice.post(reverse("admin:tenants_project_add"), project)
    page = reverse("admin:tenants_project_change", args=[Project.objects.get().pk])
    alice.post(page, project | {"name": "Shop", "concurrency": "3"})
    assert Project.objects.values_list("slug", "name", "concurrency").get() == ("web", "Shop", 3)

    member = {"tenant": "acme", "user": User.objects.get().pk, "role": "viewer"}
    alice.post(reverse("admin:tenants_member_add"), member)
    alice.post(reverse("admin:tenants_member_change", args=[Member.objects.get().pk]), member | {"role": "owner"})
    assert Member.objects.get().role == "owner"
    for name, row in (("member", Member.objects.get()), ("project", Project.objects.get())):
        alice.post(reverse(f"admin:tenants_{name}_delete", args=[row.pk]), {"post": "yes"})
    assert (Member.objects.exists(), Project.objects.exists()) == (False, False)
