"""At every millisecond a request pays the price that the list says was in force when it was admitted."""

import re
import threading
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
import redis
from django.db import connection, transaction

from billing.budgets import counters as budget_counters
from billing.models import Budget, Price
from billing.models.price import LEAD
from billing.price_book import SELECT, PriceBook
from billing.price_start import TooEarly, start_of, whole_ms
from billing.tests.stream import append, usage_event
from headrace.apply import apply_prices
from headrace.gateway.process.snapshot import POLL_SECONDS
from headrace.gateway.tests.test_prices import ask
from headrace_dev.testing.database_clock import database_now
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World, drained, records
from tenants.meters import counters

_TWO = dict.fromkeys(("input", "cached_input", "output"), Decimal(2))


def book() -> PriceBook:
    with connection.cursor() as cursor:
        cursor.execute(SELECT)
        return PriceBook(cursor.fetchall())


def set_by_list(world: World, rate: str, start: str = "") -> str:
    """As `prices import` does; what it says."""
    text = f"model,currency,input,output,effective_from\n{world.model},{world.tenant.currency},{rate},{rate},{start}\n"
    return "\n".join(change.told for change in apply_prices(text, source="f.csv", actor="test").changes)


def started(world: World, version: int) -> datetime:
    moment: datetime = Price.objects.get(version=f"{world.model}@{version}").effective_from
    return moment


def test_the_lead_is_longer_than_any_process_takes_to_read_the_list() -> None:
    assert timedelta(seconds=2 * POLL_SECONDS + 0.5) < LEAD


def test_records_and_list_agree_while_prices_change_under_traffic(
    web: WebProcess, world: World, valkey: "redis.Redis"
) -> None:
    set_by_list(world, "1")
    world.wait_known(web)
    is_over = threading.Event()

    def keep_asking() -> None:
        while not is_over.is_set():
            ask(web, world)

    clients = [threading.Thread(target=keep_asking) for _ in range(4)]
    for client in clients:
        client.start()
    try:
        for version in (2, 3):
            said = set_by_list(world, str(version))
            committed = database_now()
            begins = started(world, version)
            assert begins.isoformat(timespec="milliseconds").replace("+00:00", "Z") in said
            assert committed + timedelta(seconds=1.4) < begins < committed + timedelta(seconds=2.1)
            while database_now() < begins + timedelta(seconds=0.3):
                time.sleep(0.01)
    finally:
        is_over.set()
        for client in clients:
            client.join()
    drained(valkey)
    prices, found = book(), records(world)
    for record in found:
        at_ms = record.request_id.int >> 80
        quote = prices.find(
            model=world.model, target=record.target, tenant=record.tenant, currency=record.currency, at_ms=at_ms
        )
        assert quote is not None
        assert record.price == quote.version
        assert record.cost == quote.rates.input * (record.input_tokens + record.output_tokens) / 10**6
    assert {record.price for record in found} == {f"{world.model}@{version}" for version in (1, 2, 3)}


def test_the_first_price_of_a_model_holds_at_once_also_where_no_process_knew_it(
    web: WebProcess, world: World, valkey: "redis.Redis"
) -> None:
    world.wait_known(web)
    set_by_list(world, "1")
    ask(web, world)
    drained(valkey)
    (record,) = records(world)
    assert record.admitted_at >= started(world, 1)
    assert (record.price, record.cost is None) == (f"{world.model}@1", False)


def test_a_process_that_had_an_old_list_is_put_right_with_its_budgets(world: World, valkey: "redis.Redis") -> None:
    old = world.price("1", "1", "1", effective_from=datetime(2026, 11, 1, tzinfo=UTC))
    new = world.price("3", "3", "3", effective_from=whole_ms(database_now() - timedelta(seconds=5)))
    budget = Budget.objects.create(tenant=world.tenant, name="all", amount=100, period="total", hard=False)
    budget_counters.rebuild_all(valkey, [budget])
    key = counters.key_of(budget.pk, 0)
    names = {
        "tenant": world.tenant.pk, "project": world.project.slug, "key": world.key.pk, "model": world.model,
        "currency": world.tenant.currency, "price": old.version, "cost": "0.000107", "cost_nano": 107_000,
        "rates": ["1", "1", "1"], "input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 7,
    }  # fmt: skip
    before = usage_event(new.effective_from - timedelta(milliseconds=1), **names)
    at = usage_event(new.effective_from, **names)
    valkey.hincrby(key, "spent", 2 * 107_000)  # as its settlements did
    append(valkey, before, at)
    drained(valkey)
    first, second = records(world)
    assert [(row.price, row.cost, row.cost_nano) for row in (first, second)] == [
        (old.version, Decimal("0.000107"), 107_000),
        (new.version, Decimal("0.000321"), 321_000),
    ]
    assert key.encode() in valkey.smembers(counters.WANTED)
    budget_counters.keep(valkey)
    [counter] = counters.read(valkey, [key])
    assert counter is not None
    assert counter.spent == 428_000


def test_a_price_set_for_now_is_told_of_one_that_comes_soon(world: World) -> None:
    set_by_list(world, "1")
    soon = database_now() + timedelta(seconds=20)
    set_by_list(world, "2", soon.isoformat(timespec="milliseconds"))
    said = set_by_list(world, "3")
    assert re.search(rf"until {world.model}@2 takes its place at {soon:%Y-%m-%dT%H:%M:%S}", said)
    assert started(world, 3) < started(world, 2)
    # One that would begin while processes may not know it yet comes before the newer one, which therefore charges.
    near = database_now() + timedelta(seconds=1)
    set_by_list(world, "4", near.isoformat(timespec="milliseconds"))
    assert started(world, 4) >= near
    assert started(world, 4) > started(world, 3)
    assert set_by_list(world, "4") == ""  # said a second time it is no other, though it is not yet in force


@pytest.mark.parametrize("seconds", [-59, -1, 0, 1, 1.99])
def test_no_start_is_earlier_than_every_process_knows_it(world: World, seconds: float) -> None:
    old = world.price()
    with transaction.atomic():
        price = Price(model=old.model, currency=old.currency, **_TWO)
        now = database_now()
        price.effective_from = start_of(price, now + timedelta(seconds=seconds))
        price.save()
    assert price.effective_from >= now + LEAD
    assert price.effective_from.microsecond % 1000 == 0


def test_a_price_begins_after_what_a_clock_that_is_ahead_has_on_record(world: World, valkey: "redis.Redis") -> None:
    old = world.price("1", "1", "1")
    ahead = whole_ms(database_now() + timedelta(seconds=30))
    append(valkey, usage_event(ahead, tenant=world.tenant.pk, model=world.model, currency=world.tenant.currency))
    drained(valkey)
    set_by_list(world, "2")
    assert started(world, 2) == ahead + timedelta(milliseconds=1)
    assert old.effective_from < ahead


def test_a_start_in_the_past_is_refused(world: World) -> None:
    with transaction.atomic(), pytest.raises(TooEarly):
        start_of(Price(model=world.model, currency="EUR"), database_now() - timedelta(seconds=61))


def test_a_transaction_that_takes_its_time_moves_the_start_on(world: World) -> None:
    old = world.price()
    with transaction.atomic():
        price = Price(model=old.model, currency=old.currency, **_TWO)
        start_of(price, None)
        price.effective_from = database_now() - timedelta(seconds=3)  # so long ago the beginning was worked out
        price.save()
    committed = database_now()
    price.refresh_from_db()
    assert committed + timedelta(seconds=1.4) < price.effective_from < committed + timedelta(seconds=2.1)
    assert price.effective_from.microsecond % 1000 == 0
