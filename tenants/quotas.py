"""Quotas: how much of what costs everybody one tenant may have. The database holds them, this module tells of them.

A tenant's own figure, set by an operator (`manage.py quotas`), goes before the installation's (HEADRACE_QUOTAS, which
`manage.py migrate` writes down), that before DEFAULTS. A row that is too many is refused by a trigger, under the lock
of the configuration: as IntegrityError of the constraint CONSTRAINT. What there was before a quota was lowered stays.
"""

from django.db import IntegrityError, connection, transaction

from tenants.models.quota import Quota

CONSTRAINT = "tenants_quota"
# As the triggers have them (migrations).
DEFAULTS = {
    "budgets": 200,
    "budgets_per_scope": 8,
    "keys": 1000,
    "limits": 200,
    "projects": 200,
    "webhooks": 20,
    "members": 500,
    "invitations": 100,
}


def most_of(name: str, tenant: str) -> int:
    """How many the tenant may have."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT headrace_quota_of(%s, %s)", [name, tenant])
        (most,) = cursor.fetchone()
    return DEFAULTS[name] if most is None else int(most)


def refusal(error: IntegrityError) -> str | None:
    """What to say where a trigger refused one row too many; None for any other error."""
    diagnostics = getattr(error.__cause__, "diag", None)
    is_ours = getattr(diagnostics, "constraint_name", None) == CONSTRAINT
    return str(diagnostics.message_primary) if diagnostics is not None and is_ours else None


@transaction.atomic
def write_defaults(figures: dict[str, int]) -> None:
    """Note the installation's figures; those of `figures` that are missing are DEFAULTS again."""
    Quota.objects.filter(tenant="").exclude(name__in=figures).delete()
    for name, most in figures.items():
        set_quota(name, most)


@transaction.atomic
def set_quota(name: str, most: int | None, *, tenant: str = "") -> None:
    """Let the tenant ("": every one without its own) have so many; None: as all others."""
    known = Quota.objects.filter(tenant=tenant, name=name)
    if most is None:
        known.delete()
    elif not known.filter(most=most).exists() and not known.update(most=most):
        Quota.objects.create(tenant=tenant, name=name, most=most)
