"""Add, change, suspend and resume tenants. Every process obeys within a second (the configuration feed)."""

from decimal import Decimal
from typing import Unpack

from django.utils import timezone

from headrace_core.writes import check_names, check_row, transactional
from tenants.limits import LimitValues
from tenants.models import Tenant


class TenantTerms(LimitValues, total=False):
    """What is left out is the model's default, or stays. The currency is fixed once a key of the tenant was used."""

    currency: str
    time_zone: str
    weight: Decimal
    cached_input_weight: float


class TenantChanges(TenantTerms, total=False):
    """What may change of a tenant. Its slug never does: everything refers to it."""

    name: str


TERMS, CHANGES = frozenset(TenantTerms.__annotations__), frozenset(TenantChanges.__annotations__)


def draft_tenant(*, slug: str, name: str, **terms: Unpack[TenantTerms]) -> Tenant:
    """Build the row that `add_tenant` saves, unsaved: for plans, and for rows that are written in bulk."""
    check_names(terms, TERMS)
    return Tenant(slug=slug, name=name, **terms)


@transactional(Tenant)
def add_tenant(*, slug: str, name: str, **terms: Unpack[TenantTerms]) -> Tenant:
    """Add a tenant. Raises InvalidWrite. The database refuses a slug that is taken."""
    tenant = draft_tenant(slug=slug, name=name, **terms)
    check_row(tenant)
    tenant.save(force_insert=True)
    return tenant


@transactional(Tenant)
def change_tenant(*, tenant: Tenant, **changes: Unpack[TenantChanges]) -> None:
    """Change what is named, and no other column. Raises InvalidWrite."""
    check_names(changes, CHANGES)
    for name, value in changes.items():
        setattr(tenant, name, value)
    check_row(tenant, changes)
    tenant.save(update_fields=list(changes))


@transactional(Tenant)
def suspend_tenant(*, tenant: Tenant) -> bool:
    """Refuse all the tenant's keys; streams already running finish. False if it was suspended before: the first moment
    stays."""
    return bool(Tenant.objects.filter(pk=tenant.pk, suspended_at=None).update(suspended_at=timezone.now()))


@transactional(Tenant)
def resume_tenant(*, tenant: Tenant) -> bool:
    """Let the tenant's keys in again. False if it was not suspended."""
    return bool(Tenant.objects.filter(pk=tenant.pk, suspended_at__isnull=False).update(suspended_at=None))
