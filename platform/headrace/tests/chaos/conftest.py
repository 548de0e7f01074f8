"""The world of the chaos test: committed rows, a model with a price, keys of three tenants, short timeouts."""

import os
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from django.db import connections
from pytest_django import DjangoDbBlocker

from billing.models import Budget, Price
from headrace.tests.chaos.parts import Parts
from headrace.tests.chaos.reference import RATES
from headrace_dev.testing.stores import Services
from headrace_dev.testing.upstream import ScriptedUpstream
from headrace_dev.testing.world import World
from routing.models import Route
from tenants.models import Project


@pytest.fixture(scope="module")
def seed() -> int:
    return int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(10**6))


@pytest.fixture(scope="module")
def requests() -> int:
    return int(os.environ.get("CHAOS_REQUESTS") or 10_000)


@pytest.fixture(scope="module")
def committed(services: Services, django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    with django_db_blocker.unblock():
        yield
        connections.close_all()
    services.empty_tables()


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream(kept=10**6) as upstream:
        yield upstream


@pytest.fixture(scope="module")
def world(committed: None, upstream: ScriptedUpstream) -> World:
    world = World(upstream.url)
    Route.objects.update(between_events_timeout=1.5, first_byte_timeout=3, total_timeout=8)
    names = dict(zip(("input", "cached_input", "output"), RATES, strict=True))
    Price.objects.create(model=world.model, currency=world.tenant.currency, **names)
    return world


@pytest.fixture(scope="module")
def tight(world: World, requests: int) -> tuple[Budget, str]:
    """A hard budget that is used up before the end, and its key's text."""
    key, secret = world.add_key()
    budget = Budget.objects.create(
        tenant=world.tenant, name="tight", key=key.pk, amount=Decimal(requests) / 8000, period="total"
    )
    return budget, secret


@pytest.fixture(scope="module")
def secrets(world: World, tight: tuple[Budget, str]) -> list[str]:
    """Keys with limits that are met, of three tenants, with budgets in which there is room for all but one."""
    found = [world.secret, tight[1]]
    Budget.objects.create(tenant=world.tenant, name="month", amount=Decimal(10**6), hard=True)
    Budget.objects.create(
        tenant=world.tenant, name="key", key=world.key.pk, amount=Decimal(1), hard=False, period="day"
    )
    Budget.objects.create(tenant=world.tenant, name="model", model=world.model, amount=Decimal(10**6), period="total")
    for name in ("globex", "initech"):
        tenant = world.add_tenant(name, concurrency=1000, output_tokens_per_minute=10**9)
        project = Project.objects.create(tenant=tenant, slug="app", name="App", requests_per_minute=10**6)
        Budget.objects.create(tenant=tenant, name="project", project="app", amount=Decimal(10**6), period="week")
        found.append(world.add_key(project, input_tokens_per_minute=10**9, concurrency=500)[1])
    return found


@pytest.fixture(scope="module")
def parts(services: Services, secrets: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    parts = Parts(services, Path(tmp_path_factory.mktemp("parts")))
    try:
        yield parts
    finally:
        parts.stop()
