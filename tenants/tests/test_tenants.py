"""Tenants are added, changed, suspended and resumed by verbs."""

from decimal import Decimal

import pytest

from headrace_core.writes import InvalidWrite
from tenants.models import Tenant
from tenants.tenants import add_tenant, change_tenant, resume_tenant, suspend_tenant

pytestmark = pytest.mark.django_db


def test_a_change_writes_the_named_columns_alone() -> None:
    tenant = add_tenant(slug="acme", name="Acme", currency="EUR", weight=Decimal(2), concurrency=5)
    suspend_tenant(tenant=tenant)
    change_tenant(tenant=tenant, name="Acme Inc", concurrency=None)
    stored = Tenant.objects.get()
    assert (stored.name, stored.currency, stored.weight, stored.limits) == ("Acme Inc", "EUR", Decimal(2), {})
    assert stored.is_suspended
    assert resume_tenant(tenant=tenant)
    with pytest.raises(TypeError, match="not to be written here: slug"):
        change_tenant(tenant=tenant, slug="other")  # type: ignore[call-arg]


def test_a_tenant_of_no_currency_or_time_zone_is_refused() -> None:
    with pytest.raises(InvalidWrite) as refused:
        add_tenant(slug="acme", name="Acme", currency="XYZ", time_zone="Mars/Base")
    assert list(refused.value.errors) == ["currency", "time_zone"]
    assert not Tenant.objects.exists()
