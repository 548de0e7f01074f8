"""Fixtures of every test: the database, migrated once; tables and Valkey, emptied after a test that wrote to them."""

from collections.abc import Iterator

import pytest
import redis
from django.core.management import call_command
from django.test import TransactionTestCase
from pytest_django import DjangoDbBlocker

from headrace_dev.testing.plugin import SERVICES
from headrace_dev.testing.stores import Services


@pytest.fixture(scope="session")
def services(pytestconfig: pytest.Config) -> Services:
    """The session's Postgres and Valkey, ready; `services.valkey.kill()` and `.start()` are there for crash tests."""
    services = pytestconfig.stash[SERVICES]
    services.wait_ready()
    return services


@pytest.fixture(scope="session")
def django_db_setup(
    services: Services, django_test_environment: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    """Create the database with its roles, and migrate it. It is no `test_` copy: the whole server is thrown away."""
    with django_db_blocker.unblock():
        call_command("migrate", verbosity=0, interactive=False)
    with pytest.MonkeyPatch.context() as patch:
        # Django's flush after a transactional test: `empty_tables` does it in a tenth of the time.
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda _: None)
        yield


@pytest.fixture(autouse=True)
def empty_valkey(services: Services) -> Iterator[None]:
    """Leave Valkey empty after each test; functions and scripts stay."""
    yield
    if services.valkey.is_running:
        with redis.Redis.from_url(services.redis_url) as client:
            client.flushall()


@pytest.fixture(autouse=True)
def empty_tables(request: pytest.FixtureRequest, services: Services) -> Iterator[None]:
    """Empty all tables after a transactional test."""
    yield
    marker = request.node.get_closest_marker("django_db")
    transactional = marker is not None and bool(marker.kwargs.get("transaction") or marker.args[:1] == (True,))
    if transactional or "transactional_db" in request.fixturenames:
        services.empty_tables()
