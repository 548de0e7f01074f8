"""A request is charged at the price in force when it was admitted, and its record says which."""

from datetime import timedelta
from decimal import Decimal

import httpx
import redis
from django.utils import timezone

from billing.models import Price, UsageHour
from headrace_dev.testing.upstream import prompt
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World, drained, records


def ask(web: WebProcess, world: World, content: str = "Hello", **fields: object) -> httpx.Response:
    answer = httpx.post(
        f"{web.url}/v1/chat/completions", json=world.body(content, **fields), headers=world.headers(), trust_env=False
    )
    assert answer.status_code == 200, answer.text
    return answer


def test_a_record_costs_what_its_tokens_cost(web: WebProcess, world: World, valkey: "redis.Redis") -> None:
    world.wait_known(web)
    price = world.price("0.5", "0.05", "1.5")
    ask(web, world)
    drained(valkey)
    (record,) = records(world)
    uncached = record.input_tokens - record.cached_input_tokens
    expected = uncached * Decimal("0.5") + record.cached_input_tokens * Decimal("0.05")
    assert record.cost == (expected + record.output_tokens * Decimal("1.5")) / 10**6
    assert record.price == price.version
    [line] = [line for line in web.records() if line["request_id"] == str(record.request_id)]
    assert (line["uncached_input_tokens"], line["price"], line["upstream_id"]) == (
        record.uncached_input_tokens, price.version, record.upstream_id,
    )  # fmt: skip
    assert Decimal(line["cost"]) == record.cost
    hour = UsageHour.objects.get(model=world.model)
    assert (hour.cost, hour.cost_nano, hour.price, hour.unpriced) == (record.cost, record.cost_nano, price.version, 0)


def test_without_a_price_it_is_unpriced_and_never_free(web: WebProcess, world: World, valkey: "redis.Redis") -> None:
    world.wait_known(web)
    world.price(currency="JPY")
    ask(web, world)
    drained(valkey)
    (record,) = records(world)
    assert (record.cost, record.cost_nano, record.price) == (None, None, None)
    assert UsageHour.objects.get(model=world.model).unpriced == 1


def test_a_price_that_comes_into_force_during_a_stream_is_for_the_next_one(
    web: WebProcess, world: World, valkey: "redis.Redis"
) -> None:
    old = world.price("1")
    new = Price.objects.create(
        model=world.model,
        input=Decimal(2),
        cached_input=Decimal(2),
        output=Decimal(2),
        effective_from=timezone.now() + timedelta(seconds=2.5),
    )
    world.wait_followed(web)
    ask(web, world, prompt(tokens=40, interval_ms=80), stream=True)
    assert timezone.now() > new.effective_from
    ask(web, world)
    drained(valkey)
    assert [record.price for record in records(world)] == [old.version, new.version]
