"""A tenant's keys all stop opening the door, and open it again. Streams already running finish."""

from django.db import transaction
from django.utils import timezone

from tenants.models import Tenant


@transaction.atomic
def suspend_tenant(tenant: Tenant) -> bool:
    """False if it was suspended before: the first moment stays."""
    return bool(Tenant.objects.filter(pk=tenant.pk, suspended_at=None).update(suspended_at=timezone.now()))


@transaction.atomic
def resume_tenant(tenant: Tenant) -> bool:
    """False if it was not suspended."""
    return bool(Tenant.objects.filter(pk=tenant.pk, suspended_at__isnull=False).update(suspended_at=None))
