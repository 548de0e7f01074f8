from collections.abc import Iterator

import pytest
from django.db import connections
from pytest_django import DjangoDbBlocker

from headrace.portal.tests.cast import Cast
from headrace_dev.testing.stores import Services


@pytest.fixture(autouse=True, scope="module")
def committed(services: Services, django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Rows are committed as they are written: a page's own connection has to see them. They go with the module."""
    with django_db_blocker.unblock():
        yield
        connections.close_all()
    services.empty_tables()


@pytest.fixture
def cast(services: Services) -> Iterator[Cast]:
    yield Cast()
    services.empty_tables()


@pytest.fixture(scope="module")
def shared(committed: None) -> Cast:
    """One cast for a module that only looks."""
    return Cast()
