"""What a tenant has besides projects and keys: people, terms, budgets, limits, webhooks; a larger one more of each."""

from decimal import Decimal
from functools import cache

from allauth.account.models import EmailAddress
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User

from billing.models import BillingAccount, Budget, LegalEntity, SetBy, WebhookEndpoint
from headrace_dev.bench.ledger.seeding.offers import MODELS
from tenants.invitations import invite
from tenants.members import draft_member
from tenants.models import Member, ModelLimits, Project, Role, Tenant

_TERMS = {"address": "1 Main Road", "tax_rate": Decimal(19), "discount_percent": Decimal("2.5")}


def owner_of(tenant: str) -> str:
    """The name of the tenant's owner, who has no password."""
    return _name("owner", tenant)


def make(tenant: Tenant, entity: LegalEntity, keys: list[str]) -> None:
    BillingAccount.objects.create(tenant=tenant, legal_entity=entity, **_TERMS)
    more = len(keys) // 10
    _people(tenant, ["owner", *(f"developer-{number}" for number in range(more))])
    for number in range(1 + more // 4):
        email = f"new-{number}@{tenant.slug}.example"
        invite(tenant=tenant, email=email, role=Role.VIEWER, invited_by="bench")
    _budgets(tenant, keys[:more])
    ModelLimits.objects.bulk_create(
        ModelLimits(tenant=tenant, key=key, model=MODELS[0], concurrency=50) for key in keys[: 1 + more]
    )
    WebhookEndpoint.objects.bulk_create(
        WebhookEndpoint(tenant=tenant, url=f"https://hooks.example/{number}", secret=b"sealed", enabled=False)
        for number in range(1 + more // 4)
    )


def _people(tenant: Tenant, names: list[str]) -> None:
    """The first is an owner, the others are developers."""
    rows = [User(username=_name(name, tenant.slug), email=_name(name, tenant.slug)) for name in names]
    for row in rows:
        row.password = _no_password()
    users = User.objects.bulk_create(rows)
    EmailAddress.objects.bulk_create(
        EmailAddress(user=user, email=user.email, primary=True, verified=True) for user in users
    )
    Member.objects.bulk_create(
        draft_member(tenant=tenant, user=user, role=Role.DEVELOPER if place else Role.OWNER)
        for place, user in enumerate(users)
    )


def _budgets(tenant: Tenant, keys: list[str]) -> None:
    """One of the tenant, an operator's; its own of each project, and of these keys."""
    projects = Project.objects.of(tenant).values_list("slug", flat=True)
    own = {"tenant": tenant, "set_by": SetBy.TENANT}
    rows = [Budget(tenant=tenant, name="monthly", amount=Decimal(100_000), hard=False)]
    rows += [Budget(name=slug, project=slug, amount=Decimal(10_000), period="week", **own) for slug in projects]
    rows += [Budget(name=key.lower(), key=key, amount=Decimal(1000), period="day", **own) for key in keys]
    Budget.objects.bulk_create(rows)


def _name(person: str, tenant: str) -> str:
    return f"{person}@{tenant}.example"


@cache
def _no_password() -> str:
    return make_password(None)
