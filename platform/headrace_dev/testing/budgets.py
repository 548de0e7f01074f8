"""Budgets in end-to-end tests: made, kept as Celery keeps them, and compared with the ledger."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import redis
from django.conf import settings
from django.db import connection

from billing.budgets import counters as budgets
from billing.budgets import terms
from billing.models import Budget
from headrace_dev.testing.invariants import eventually
from headrace_dev.testing.world import World
from tenants.meters import counters
from tenants.meters.counters import Counter


@contextmanager
def kept(seconds: float = 0.2, *, patience: float = 0) -> Iterator[None]:
    """Make missing counters every so often, as the worker does each second. patience: as of budgets.keep."""
    done = threading.Event()

    def work() -> None:
        with redis.Redis.from_url(settings.REDIS_URL) as client:
            while not done.wait(seconds):
                budgets.keep(client, patience=patience)
        connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def add_budget(world: World, amount: object, name: str = "monthly", **fields: Any) -> Budget:
    tenant = fields.pop("tenant", world.tenant)
    return terms.add_budget(tenant=tenant.pk, name=name, amount=Decimal(str(amount)), **fields)


def wait_counted(*wanted: Budget) -> None:
    """Wait until each budget's present window has its counter; `kept` makes them."""
    with redis.Redis.from_url(settings.REDIS_URL) as client:

        def are_counted() -> bool:
            keys = [part.key for part in budgets.current(wanted, datetime.now(UTC))]
            return counters.is_trusted(client, counters.run_id(client)) and None not in counters.read(client, keys)

        eventually(are_counted)


def counter(client: "redis.Redis", budget: Budget) -> Counter:
    """The present window's counter, which must be there."""
    [part] = budgets.current([budget], datetime.now(UTC))
    [found] = counters.read(client, [part.key])
    assert found is not None
    return found


def on_record(budget: Budget) -> int:
    """What the ledger has of the present window, in nano-units."""
    [total] = budgets.ledger_sums(budgets.current([budget], datetime.now(UTC)))
    return total
