"""Fixtures of every test: the database, migrated once; tables and Valkey, emptied after a test that wrote to them."""

from collections.abc import Iterator

import psycopg
import pytest
import redis
from django.core.management import call_command
from pytest_django import DjangoDbBlocker

from headrace.testing.plugin import SERVICES
from headrace.testing.stores import Services


@pytest.fixture(scope="session")
def services(pytestconfig: pytest.Config) -> Services:
    """The session's Postgres and Valkey, ready; `services.valkey.kill()` and `.start()` are there for crash tests."""
    services = pytestconfig.stash[SERVICES]
    services.wait_ready()
    return services


@pytest.fixture(scope="session")
def django_db_setup(services: Services, django_test_environment: None, django_db_blocker: DjangoDbBlocker) -> None:
    """Create the database with its roles, and migrate it. It is no `test_` copy: the whole server is thrown away."""
    with django_db_blocker.unblock():
        call_command("migrate", verbosity=0, interactive=False)
    with psycopg.connect(services.database_url, autocommit=True) as connection:
        # Django empties the tables after a transactional test as headrace_system.
        connection.execute("GRANT TRUNCATE ON ALL TABLES IN SCHEMA public TO headrace_system")


@pytest.fixture(autouse=True)
def empty_valkey(services: Services) -> Iterator[None]:
    """Leave Valkey empty after each test; functions and scripts stay."""
    yield
    if services.valkey.is_running:
        with redis.Redis.from_url(services.redis_url) as client:
            client.flushall()


@pytest.fixture(autouse=True)
def empty_unmanaged_tables(request: pytest.FixtureRequest, services: Services) -> Iterator[None]:
    """After a transactional test, empty the tables that Django's own flush leaves out: the unmanaged ones."""
    yield
    marker = request.node.get_closest_marker("django_db")
    transactional = marker is not None and bool(marker.kwargs.get("transaction") or marker.args[:1] == (True,))
    if not (transactional or "transactional_db" in request.fixturenames):
        return
    services.empty_tables()
