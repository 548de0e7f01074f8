"""The cast: acme with one member in each role; globex with carol; initech, suspended, with ian; an outsider; an
operator. Rows are committed: pages read them on a connection of their own."""

from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import Any

from allauth.account.models import EmailAddress
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from billing.models import Budget, Invoice, InvoiceLine, Price, WebhookEndpoint
from routing.models import Model
from tenants.invitations import invite
from tenants.models import ApiKey, Invitation, Member, ModelLimits, Project, Role, Tenant
from tenants.tests.cast import make_key, make_project, make_tenant

PASSWORD = "correct horse battery staple"
ROLES = {"alice": Role.OWNER, "ada": Role.ADMIN, "bob": Role.DEVELOPER, "fay": Role.FINANCE, "vic": Role.VIEWER}


class Team:
    """A tenant with a project, a key and an invitation."""

    def __init__(self, slug: str, **fields: Any) -> None:
        self.tenant: Tenant = make_tenant(slug, name=f"{slug.title()} Corporation", **fields)
        self.project: Project = make_project(self.tenant, "web")
        self.key: ApiKey = make_key(self.project, f"{slug}-key")
        self.invoice = draft_of(self.tenant, self.project)
        self.budget = Budget.objects.create(
            tenant=self.tenant, name="monthly", amount=100, key=self.key.pk, set_by="tenant"
        )
        self.webhook = WebhookEndpoint.objects.create(tenant=self.tenant, url="https://hooks.test/", secret=b"sealed")
        self.limits = ModelLimits.objects.create(tenant=self.tenant, key=self.key.pk, model="demo", concurrency=9)
        self.invitation: Invitation
        self.invitation, self.token = invite(
            tenant=self.tenant, email=f"new@{slug}.example", role=Role.VIEWER, invited_by="somebody"
        )


def draft_of(tenant: Tenant, project: Project) -> Invoice:
    """A draft with one line, as if its month had some use."""
    if not Price.objects.filter(version="demo@1").exists():
        Price.objects.create(
            model="demo",
            input=Decimal(1),
            cached_input=Decimal(1),
            output=Decimal(2),
            currency="EUR",
            effective_from=timezone.now(),
        )
    start, end = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC)
    period = {"period": start.date(), "period_start": start, "period_end": end, "time_zone": "UTC"}
    invoice = Invoice.objects.create(tenant=tenant, currency=tenant.currency, net=2, total=2, **period)
    InvoiceLine.objects.create(
        invoice=invoice, position=1, kind="usage", period=start.date(), description="demo, output tokens",
        project=project.slug, model="demo", token_class="output", price="demo@1", quantity=1_000_000, unit_price=2,
        exact=2, amount=2,
    )  # fmt: skip
    return invoice


class Cast:
    def __init__(self) -> None:
        self.acme = Team("acme", currency="EUR", time_zone="Europe/Berlin")
        self.globex = Team("globex")
        self.initech = Team("initech", suspended_at=timezone.now())
        self.members = {name: self.add(name, self.acme.tenant, role) for name, role in ROLES.items()}
        self.members["carol"] = self.add("carol", self.globex.tenant, Role.OWNER)
        self.members["ian"] = self.add("ian", self.initech.tenant, Role.OWNER)
        person("oscar")
        person("opal", is_staff=True, is_superuser=True)
        Model.objects.create(name="demo", context_window=4096)

    def add(self, name: str, tenant: Tenant, role: Role) -> Member:
        return Member.objects.create(tenant=tenant, user=person(name), role=role)


@cache
def _hash() -> str:
    return make_password(PASSWORD)  # slow on purpose: once is enough


def person(name: str, **fields: Any) -> User:
    address = f"{name}@example.com"
    user = User.objects.create(username=address, email=address, password=_hash(), **fields)
    EmailAddress.objects.create(user=user, email=user.email, primary=True, verified=True)
    return user


def browser(name: str = "", **options: Any) -> Client:
    """A test client, signed in as `name` if given."""
    client = Client(REMOTE_ADDR="192.0.2.7", **options)
    if name:
        client.force_login(User.objects.get(username=f"{name}@example.com"))
    return client
