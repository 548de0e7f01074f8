from collections.abc import Iterator

import pytest
from django.db import connections
from pytest_django import DjangoDbBlocker

from headrace_dev.bench.ledger.seeding.seeding import seed
from headrace_dev.bench.ledger.seeding.size import Size, until_now
from headrace_dev.testing.stores import Services


@pytest.fixture(scope="module")
def seeded(services: Services, django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Size]:
    """A small ledger, committed: its largest tenant has most of the keys, and more of everything than the others."""
    size = until_now(tenants=4, keys=100, records=6000, seed=7)
    with django_db_blocker.unblock():
        seed(size, print)
        yield size
        connections.close_all()
    services.empty_tables()
