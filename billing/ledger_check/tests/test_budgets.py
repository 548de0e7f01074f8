"""The check of budgets' counters against the ledger, the stream and adjustments."""

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal

import pytest
import redis

from billing.budgets import counters
from billing.budgets.changing import adjust_budget
from billing.ledger_check import budgets as check
from billing.ledger_check.tests.books import found, priced_event, set_price, settle
from billing.models import Budget, Price
from billing.tests.stream import append, connect
from tenants.models import Tenant

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def valkey() -> Iterator["redis.Redis"]:
    with connect() as client:
        yield client


@pytest.fixture
def budget(monkeypatch: pytest.MonkeyPatch, valkey: "redis.Redis") -> Budget:
    """One that has spent."""
    monkeypatch.setattr(check, "_PAUSE", 0)
    tenant = Tenant.objects.create(slug="acme", name="Acme", currency="EUR")
    budget = Budget.objects.create(tenant=tenant, name="all", amount=Decimal(100))
    Budget.objects.create(tenant=tenant, name="other", model="other", amount=Decimal(100), period="total")
    price = set_price()
    settle(priced_event(price), priced_event(price))
    counters.keep(valkey)
    return budget


def key(budget: Budget) -> str:
    return counters.current([budget], datetime.now(UTC))[0].key


def test_it_agrees_with_the_ledger_the_stream_and_adjustments(budget: Budget, valkey: "redis.Redis") -> None:
    assert found("budgets").compared >= 2
    event = priced_event(Price.objects.get())
    append(valkey, event, event)
    valkey.hincrby(key(budget), "spent", event["cost_nano"])
    adjust_budget(valkey, budget=budget, nano=-5, who="test", origin="test", reason="test")
    assert found("budgets").differences == []


def test_it_sees_a_counter_that_is_off_by_a_billionth(budget: Budget, valkey: "redis.Redis") -> None:
    valkey.hincrby(key(budget), "spent", 1)
    (said,) = found("budgets").differences
    assert said.startswith("acme/all from ")


def test_it_sees_what_is_held_by_nobody(budget: Budget, valkey: "redis.Redis") -> None:
    valkey.hincrby(key(budget), "held", 7)
    assert "7 is held, and nothing runs" in found("budgets").differences[0]


def test_it_compares_no_counter_that_is_to_be_made_anew(budget: Budget, valkey: "redis.Redis") -> None:
    valkey.hincrby(key(budget), "spent", 1)
    valkey.delete("hr:epoch")
    assert (found("budgets").compared, found("budgets").total) == (0, 0)
    counters.keep(valkey)
    assert found("budgets").total == 0
    assert found("budgets").compared >= 2
