"""Counters follow the ledger: made ahead, made anew when lost, set and never added to."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import redis
from django.db import DataError, IntegrityError, transaction

from billing import drain
from billing.budgets import changing
from billing.budgets import counters as budgets
from billing.models import Budget, BudgetAdjustment
from billing.tests.stream import append, connect, usage_event
from tenants.meters import counters
from tenants.tests.cast import make_tenant, sql

pytestmark = pytest.mark.django_db


@pytest.fixture
def valkey() -> Iterator["redis.Redis"]:
    with connect() as client:
        yield client


def make(name: str = "monthly", **fields: Any) -> Budget:
    return Budget.objects.create(**{"tenant_id": "acme", "name": name, "amount": Decimal(10)} | fields)


def spend(client: "redis.Redis", at: datetime, cents: int = 100, **changes: Any) -> None:
    """One request's event, at a price of a cent per token of its input."""
    cost = f"{cents // 100}.{cents % 100:02}"
    rates = ["10000", "10000", "0"]
    tokens = {"input_tokens": cents, "cached_input_tokens": 0, "output_tokens": 1, "reasoning_tokens": 0}
    append(
        client,
        usage_event(at, cost=cost, cost_nano=cents * 10**7, rates=rates, price="demo@1", **tokens | changes),
    )


def spent(client: "redis.Redis", budget: Budget, now: datetime) -> int:
    """Cents."""
    [part] = budgets.current([budget], now)
    [counter] = counters.read(client, [part.key])
    assert counter is not None
    return counter.spent // 10**7


NOW = datetime(2036, 10, 15, 12, tzinfo=UTC)  # to come: counters of windows long past expire


def test_it_makes_missing_counters_from_the_ledger_and_the_stream(valkey: "redis.Redis") -> None:
    make_tenant(time_zone="Asia/Tokyo")
    all_of_it, web, model = make(), make("web", project="web"), make("model", model="demo", period="total")
    sql("SELECT headrace_usage_partition('2036-10-01')")
    spend(valkey, NOW, 100)
    spend(valkey, NOW, 20, project="mobile")
    spend(valkey, NOW, 3, model="other")
    spend(valkey, datetime(2036, 9, 30, 14, 59, 59, tzinfo=UTC), 1000)  # before midnight in Tokyo
    spend(valkey, datetime(2036, 9, 30, 15, tzinfo=UTC), 4)
    sql("SELECT headrace_usage_partition('2036-09-01')")
    drain.drain_all(valkey)
    spend(valkey, NOW, 7)
    assert budgets.keep(valkey, now=NOW) == 5
    assert [spent(valkey, budget, NOW) for budget in (all_of_it, web, model)] == [134, 114, 1131]
    spend(valkey, NOW, 50)
    for _ in range(2):
        budgets.rebuild_all(valkey, now=NOW)
        assert [spent(valkey, budget, NOW) for budget in (all_of_it, web, model)] == [184, 164, 1181]
    assert budgets.keep(valkey, now=NOW) == 0


def test_it_has_the_next_windows_counter_before_its_time(valkey: "redis.Redis") -> None:
    make_tenant(time_zone="America/New_York")
    budget = make(period="day")
    budgets.keep(valkey, now=NOW)
    tomorrow = datetime(2036, 10, 16, 4, tzinfo=UTC)  # midnight there
    assert spent(valkey, budget, tomorrow) == 0
    assert budgets.keep(valkey, now=tomorrow) == 1


def test_it_trusts_nothing_after_a_loss(valkey: "redis.Redis") -> None:
    make_tenant()
    budget = make()
    budgets.keep(valkey, now=NOW)
    [part] = budgets.current([budget], NOW)
    valkey.hset(part.key, "spent", "999")
    valkey.hset("hr:b:4711:0", mapping={"spent": "1", "held": "0"})
    valkey.set(counters.EPOCH, "of-another-run")
    assert budgets.keep(valkey, now=NOW) == 2
    assert spent(valkey, budget, NOW) == 0
    assert not valkey.exists("hr:b:4711:0")
    assert counters.is_trusted(valkey, counters.run_id(valkey))


def test_it_waits_after_a_loss_until_running_requests_could_put_their_holds_back(valkey: "redis.Redis") -> None:
    make_tenant()
    budget = make()
    run = counters.run_id(valkey)
    assert budgets.keep(valkey, now=NOW, patience=60) == 2
    assert budgets.keep(valkey, now=NOW, patience=60) == 0
    [part] = budgets.current([budget], NOW)
    valkey.hset(part.key, "spent", "999")
    budgets.rebuild_all(valkey, now=NOW)
    valkey.hset(part.key, "spent", "999")
    assert not counters.is_trusted(valkey, run)
    time.sleep(0.02)
    assert budgets.keep(valkey, now=NOW, patience=0.01) == 2
    assert counters.is_trusted(valkey, run)
    assert spent(valkey, budget, NOW) == 0
    for _ in range(2):  # and at the next loss, although the server is the same
        valkey.flushall()
        budgets.keep(valkey, now=NOW, patience=60)
        assert not counters.is_trusted(valkey, run)


def test_it_makes_a_counter_that_a_request_of_an_old_window_missed(valkey: "redis.Redis") -> None:
    make_tenant()
    budget = make(period="day")
    budgets.keep(valkey, now=NOW)
    [part] = budgets.current([budget], NOW - timedelta(days=1))
    nobodys = ("hr:b:4711:0", "hr:b:x:y", f"hr:b:{budget.pk}:y", f"hr:b:{budget.pk}:{10**18}", f"hr:b:{budget.pk}:-1")
    valkey.sadd(counters.WANTED, part.key, *nobodys)
    assert budgets.keep(valkey, now=NOW) == 1
    assert spent(valkey, budget, NOW - timedelta(days=1)) == 0
    assert not valkey.smembers(counters.WANTED)


def test_it_takes_what_a_dead_drain_had_read(valkey: "redis.Redis") -> None:
    make_tenant()
    budget = make(period="total")
    spend(valkey, datetime.now(UTC), 5)
    drain.drain_once(valkey)
    spend(valkey, datetime.now(UTC), 6)
    valkey.xreadgroup(drain.GROUP, "somebody-else", {"hr:usage": ">"})
    budgets.keep(valkey)
    assert spent(valkey, budget, datetime.now(UTC)) == 11
    assert valkey.xlen("hr:usage") == 0


def test_a_reset_begins_the_window_anew_and_is_on_record(valkey: "redis.Redis") -> None:
    make_tenant()
    budget = make(period="total")
    spend(valkey, datetime.now(UTC), 500)
    budgets.keep(valkey)
    adjustment = changing.reset_budget(valkey, budget=budget, who="op", origin="test", reason="goodwill")
    assert adjustment is not None
    assert adjustment.nano == -5 * 10**9
    assert spent(valkey, budget, datetime.now(UTC)) == 0
    assert changing.reset_budget(valkey, budget=budget, who="op", origin="test", reason="again") is None
    spend(valkey, datetime.now(UTC), 30)
    changing.adjust_budget(valkey, budget=budget, nano=-(10**9), who="op", origin="test", reason="a gift")
    budgets.rebuild_all(valkey)
    assert spent(valkey, budget, datetime.now(UTC)) == -70
    assert BudgetAdjustment.objects.count() == 2


def test_a_disabled_budgets_counter_goes(valkey: "redis.Redis") -> None:
    make_tenant()
    budget = make()
    budgets.keep(valkey, now=NOW)
    Budget.objects.update(enabled=False)
    budgets.keep(valkey, now=NOW)
    [part] = budgets.current([budget], NOW)
    assert 0 < valkey.pttl(part.key) <= counters.LET_GO_MS


@pytest.mark.parametrize("amount", ["0", "-1", "NaN", "Infinity", "-Infinity", "1e400", "4000000000.000000001"])
def test_the_database_refuses_an_amount_that_is_none(amount: str) -> None:
    make_tenant()
    with pytest.raises((IntegrityError, DataError)), transaction.atomic():
        sql(
            "INSERT INTO billing_budget (tenant_id, name, project, key, model, amount, period, hard, enabled,"
            " thresholds, created_at) VALUES ('acme', 'b', '', '', '', %s::numeric, 'day', true, true, '{}', now())",
            amount,
        )


@pytest.mark.parametrize("change", ["thresholds = '{0}'", "thresholds = '{1001}'", "thresholds = '{NULL}'",
                                    "extra = 5", "extra = 'NaN', extra_until = now()", "period = 'year'",
                                    "project = 'web'", "name = 'other'", "tenant_id = 'globex'"])  # fmt: skip
def test_the_database_refuses_a_change_that_is_none(change: str) -> None:
    make_tenant()
    make_tenant("globex")
    make()
    with pytest.raises((IntegrityError, DataError)), transaction.atomic():
        sql(f"UPDATE billing_budget SET {change}")


def test_another_time_zone_leaves_the_running_window_as_it_is(valkey: "redis.Redis") -> None:
    """A window that moved at once would be counted anew from hours that are not of its zone."""
    tenant = make_tenant(time_zone="UTC")
    budget, now = make(), datetime.now(UTC)
    sql("SELECT headrace_usage_partition(date_trunc('month', now())::date)")
    spend(valkey, now, 100)
    drain.drain_all(valkey)
    [before] = budgets.current([budget], now)
    tenant.time_zone = "Asia/Kolkata"
    tenant.save()
    [after] = budgets.current([budget], now)
    assert after.window == before.window
    [following] = budgets.current([budget], after.window.end)
    assert following.window.start == after.window.end
    assert following.window.end.minute == 30
