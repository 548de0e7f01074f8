"""A counter that a request missed is made, whatever fails before it is."""

import os
import threading
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

import psycopg
import pytest
import redis
from django.db import OperationalError, connection
from django.utils import timezone

from billing import drain_lock
from billing.budgets import counters as budgets
from billing.models import Budget
from billing.tests.stream import connect
from tenants.meters import counters
from tenants.tests.cast import make_tenant, sql

pytestmark = pytest.mark.django_db(transaction=True)

# A session of this database that waits for the drain lock, which another holds.
_WAITS = """
SELECT pid FROM pg_locks JOIN pg_database AS d ON d.oid = database
WHERE locktype = 'advisory' AND NOT granted AND datname = current_database()
"""


@pytest.fixture
def valkey() -> Iterator["redis.Redis"]:
    with connect() as client:
        yield client


def test_it_is_still_wanted_after_the_database_failed(valkey: "redis.Redis") -> None:
    make_tenant()
    budget = Budget.objects.create(tenant_id="acme", name="daily", amount=Decimal(10), period="day")
    budgets.keep(valkey)
    [old] = budgets.current([budget], timezone.now() - timedelta(days=1))
    valkey.sadd(counters.WANTED, old.key, "hr:b:4711:0")
    said: list[str] = []

    def keep() -> None:
        with connect() as client:
            try:
                said.append(f"made {budgets.keep(client)}")
            except OperationalError as error:
                said.append(str(error).splitlines()[0])
            finally:
                connection.close()

    with drain_lock.alone():
        keeping = threading.Thread(target=keep)
        keeping.start()
        for _ in range(1000):
            if found := sql(_WAITS):
                break
            keeping.join(0.01)
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as operator:
            operator.execute("SELECT pg_terminate_backend(%s)", found[0])
        keeping.join()
    assert said == ["terminating connection due to administrator command"]
    assert valkey.smembers(counters.WANTED) == {old.key.encode()}
    assert counters.read(valkey, [old.key]) == [None]
    assert budgets.keep(valkey) == 1
    [made] = counters.read(valkey, [old.key])
    assert made is not None
    assert not valkey.exists(counters.WANTED)
    assert budgets.keep(valkey) == 0


def test_what_a_rebuild_of_all_made_is_wanted_no_more(valkey: "redis.Redis") -> None:
    make_tenant()
    budget = Budget.objects.create(tenant_id="acme", name="all", amount=Decimal(10), period="total")
    [part] = budgets.current([budget], timezone.now())
    valkey.sadd(counters.WANTED, part.key)
    budgets.rebuild_all(valkey)
    assert not valkey.exists(counters.WANTED)
