"""A small ledger to check: its cast, a price, events at it, and damage that no verb of ours could do."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import connection
from django.utils import timezone

from billing import pricing
from billing.drain import drain_all
from billing.ledger_check.check import Outcome
from billing.ledger_check.registry import CHECKS
from billing.models import Price
from billing.tests.stream import Event, append, connect, usage_event
from engines.models import Pool
from tenants import keys
from tenants.api_keys import issue_key
from tenants.models import Project, Tenant


def make_cast() -> None:
    """Whom and what an event is of by itself, and another tenant with a project and key."""
    make_caller("acme", "ABCDEFGHIJKL")
    make_caller("globex", "GLOBEXGLOBEX")


def make_caller(tenant: str = "acme", key: str = "ABCDEFGHIJKL") -> None:
    """The project web of a tenant (made, if it is not there), its key, and the pool local that serves them."""
    Pool.objects.get_or_create(name="local", model="demo")
    Tenant.objects.get_or_create(slug=tenant, defaults={"name": tenant.title(), "currency": "EUR"})
    project = Project.objects.create(tenant_id=tenant, slug="web", name="Web")
    issue_key(project=project, name="app", minted=keys.mint(key))


def set_price(model: str = "demo", **fields: Any) -> Price:
    """One in force for two years, unless `fields` say otherwise."""
    values: dict[str, Any] = {
        "currency": "EUR",
        "input": Decimal("0.5"),
        "cached_input": Decimal("0.05"),
        "output": Decimal("1.5"),
        "effective_from": timezone.now() - timedelta(days=730),
    }
    return Price.objects.create(model=model, **values | fields)


def priced_event(price: Price, at: datetime | None = None, **changes: Any) -> Event:
    event = usage_event(at, price=price.version, model=price.model, **changes)
    names = ("input_tokens", "cached_input_tokens", "output_tokens")
    cost = pricing.cost(price.rates, **{name: event[name] for name in names})
    return event | {"cost": pricing.text(cost), "cost_nano": pricing.nano(cost)}


def settle(*events: Event) -> None:
    with connect() as client:
        append(client, *events)
        drain_all(client)


def damage(sql: str) -> None:
    """Change rows that nothing may change."""
    with connection.cursor() as cursor:
        cursor.execute("SET ROLE NONE")
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(sql)
        cursor.execute("SET LOCAL session_replication_role = origin")
        cursor.execute("SET ROLE headrace_system")


def found(name: str) -> Outcome:
    with connect() as client:
        return CHECKS[name].run(client)
