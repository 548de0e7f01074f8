"""One wrong record of every kind, each in a ledger with all the others: each is found, and named for what it is."""

from datetime import timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from django.db import connection
from django.utils import timezone

from billing.ledger_check.registry import CHECKS
from billing.ledger_check.tests.books import damage, found, make_cast, priced_event, set_price, settle
from billing.models import Price, UsageRecord
from billing.tests.stream import Event, usage_event
from engines.models import Pool
from tenants.models import Project

pytestmark = pytest.mark.django_db
PRICES = ("old", "now", "soon", "other", "dollars", "globex", "elsewhere", "own", "for_acme")
# What keeps such rows out; the check is there for the day on which it did not.
UNGUARDED = ("part", "times", "tokens", "subsets", "cost", "nano", "currency", "pkey")


class Wrong(NamedTuple):
    """How a right record of `model` is made wrong, and which check says so. {name} in `said`: a price's version."""

    check: str
    said: str
    change: str = ""  # {name}: the columns of a record at that price
    model: str = "demo"
    insert: str = ""  # a copy of the record, with these columns changed


WRONG = {
    "a superseded price": Wrong("costs", "its price {old} was superseded, {now} held", "{old}"),
    "one not yet begun": Wrong("costs", "its price {soon} had not begun, {now} held", "{soon}"),
    "another model's": Wrong("costs", "its price {other} is of the model other, {now} held", "{other}"),
    "another currency's": Wrong("costs", "its price {dollars} is in USD, the record in EUR, {now} held", "{dollars}"),
    "another tenant's": Wrong("costs", "its price {globex} is of the tenant globex, {now} held", "{globex}"),
    "another target's": Wrong("costs", "its price {elsewhere} is of the target elsewhere, {now} held", "{elsewhere}"),
    "all tenants'": Wrong("costs", "its price {own} was superseded, {for_acme} held", "{own}", model="own"),
    "one on no list": Wrong("costs", "its price gone@1 is on no list, {now} held", "price = 'gone@1'"),
    "no price": Wrong("costs", "no price, and {now} held", "price = NULL, cost = NULL, cost_nano = NULL"),
    "a price where none held": Wrong("costs", "its price {now} is of the model demo, and none held", "{now}", "none"),
    "a wrong cost": Wrong("costs", "nano), at {now} ", "cost = cost + 0.000000000001"),
    "a wrong cost for budgets": Wrong("costs", "nano), at {now} ", "cost_nano = cost_nano + 1"),
    "a price for a copy": Wrong("costs", "a shadow copy at price {now}", "kind = 'shadow', cost = 0, cost_nano = 0"),
    "an unknown tenant": Wrong("records", "there is no tenant nobody", "tenant = 'nobody'"),
    "an unknown project": Wrong("records", "tenant acme has no project none", "project = 'none'"),
    "an unknown key": Wrong("records", "there is no key ZZZZZZZZZZZZ", "key = 'ZZZZZZZZZZZZ'"),
    "another tenant's key": Wrong("records", "key GLOBEXGLOBEX is of the tenant globex", "key = 'GLOBEXGLOBEX'"),
    "another project's key": Wrong("records", "key ABCDEFGHIJKL is of another project", "project = 'batch'"),
    "an unknown target": Wrong("records", "there never was a target nowhere", "target = 'nowhere'"),
    "another currency": Wrong("records", "it is in USD, its tenant in EUR", "currency = 'USD'"),
    "an unknown kind": Wrong("records", "kind gift is unknown", "kind = 'gift'"),
    "an unknown status": Wrong("records", "status fine is unknown", "status = 'fine'"),
    "an unknown source": Wrong("records", "usage_source guessed is unknown", "usage_source = 'guessed'"),
    "another moment than its id's": Wrong(
        "records", "not of the millisecond inside its id", "admitted_at = admitted_at - interval '1 millisecond'"
    ),
    "admitted after it was finished": Wrong(
        "records", "finished before it was admitted", "finished_at = admitted_at - interval '1 second'"
    ),
    "negative tokens": Wrong("records", "it has less than no tokens", "output_tokens = -1"),
    "cached beyond input": Wrong("records", "more cached input than input", "cached_input_tokens = 101"),
    "reasoning beyond output": Wrong("records", "more reasoning than output", "reasoning_tokens = 8"),
    "a late price's part": Wrong("records", "part 10000 of kind chat", "part = 10000"),
    "a row twice": Wrong("records", "it is there 2 times", insert="part = 0"),
    "a correction of nothing": Wrong("corrections", "corrects a record that is not there", "part = 1"),
    "a correction of another's": Wrong(
        "corrections", "is of another tenant, key than its record", insert="part = 1, tenant = 'x', key = 'y'"
    ),
    "a correction of too much": Wrong(
        "corrections", "less than nothing", insert="part = 1, input_tokens = -61, cached_input_tokens = 0"
    ),
    "priced twice": Wrong("corrections", "a row that has the price {now}", insert="part = 10000, kind = 'pricing'"),
    "the pricing of nothing": Wrong(
        "corrections", "prices a row that is not there", insert="part = 10001, kind = 'pricing'"
    ),
}  # fmt: skip


@pytest.fixture
def prices() -> dict[str, Price]:
    now = timezone.now()
    make_cast()
    Pool.objects.create(name="elsewhere", model="demo")
    Project.objects.create(tenant_id="acme", slug="batch", name="Batch")
    return {
        "old": set_price(input=Decimal(1)),
        "now": set_price(effective_from=now - timedelta(days=9)),
        "soon": set_price(input=Decimal(3), effective_from=now + timedelta(days=1)),
        "other": set_price("other"),
        "dollars": set_price(currency="USD"),
        "globex": set_price(tenant="globex"),
        "elsewhere": set_price(target="elsewhere"),
        "own": set_price("own"),
        "for_acme": set_price("own", tenant="acme", effective_from=now - timedelta(days=9)),
    }


def right_records(prices: dict[str, Price]) -> list[Event]:
    """Of every kind that is right, so that none of them may be named."""
    now = prices["now"]
    free: dict[str, Any] = {"cost": None, "cost_nano": None, "price": None}
    unpriced = usage_event(model="late", **free)
    late = set_price("late", effective_from=timezone.now() + timedelta(days=1))  # by the time it is priced
    corrected = priced_event(now)
    return [
        priced_event(now),
        priced_event(prices["old"], timezone.now() - timedelta(days=10)),
        priced_event(prices["globex"], tenant="globex", key="GLOBEXGLOBEX"),
        priced_event(prices["elsewhere"], target="elsewhere"),
        priced_event(prices["for_acme"]),
        usage_event(model="none", **free),
        usage_event(kind="shadow", **free | {"cost": "0", "cost_nano": 0}),
        usage_event(**free | {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0, "reasoning_tokens": 0}),
        unpriced,
        priced_event(late, request_id=unpriced["request_id"], part=10_000, kind="pricing"),
        corrected,
        priced_event(
            now, request_id=corrected["request_id"], part=1, input_tokens=-3, cached_input_tokens=0, reasoning_tokens=0
        ),
    ]


def at_price(price: Price) -> str:
    event = priced_event(price)
    return f"price = '{price.version}', cost = {event['cost']}, cost_nano = {event['cost_nano']}"


def test_each_is_found_and_named_and_no_other(prices: dict[str, Price]) -> None:
    right = right_records(prices)
    by_model = {"demo": prices["now"], "own": prices["for_acme"]}
    wrong = {}
    for kind, one in WRONG.items():
        if one.model in by_model:
            wrong[kind] = priced_event(by_model[one.model])
        else:
            wrong[kind] = usage_event(model=one.model, cost=None, cost_nano=None, price=None)
    settle(*right, *wrong.values())
    assert UsageRecord.rows.count() == len(right) + len(wrong)
    assert {name: found(name).differences for name in CHECKS} == {name: [] for name in CHECKS}
    for name in UNGUARDED:
        damage(f"ALTER TABLE billing_usagerecord DROP CONSTRAINT billing_usagerecord_{name}")
    versions = {name: price.version for name, price in prices.items()}
    columns = {name: at_price(price) for name, price in prices.items()}
    for kind, one in WRONG.items():
        make_wrong(wrong[kind]["request_id"], one, columns)
    told = {name: found(name) for name in CHECKS}
    for kind, one in WRONG.items():
        said = [line for line in told[one.check].differences if wrong[kind]["request_id"] in line]
        assert len(said) == 1, (kind, said)
        assert one.said.format(**versions) in said[0], kind
    everything = "\n".join(line for outcome in told.values() for line in outcome.differences)
    assert [event for event in right if event["request_id"] in everything] == []
    assert told["hours"].total  # nor are they what their hours have


def make_wrong(request_id: str, one: Wrong, columns: dict[str, str]) -> None:
    if one.change:
        damage(f"UPDATE billing_usagerecord SET {one.change.format(**columns)} WHERE request_id = '{request_id}'")
    if one.insert:
        damage(f"CREATE TEMPORARY TABLE again AS SELECT * FROM billing_usagerecord WHERE request_id = '{request_id}'")
        damage(f"UPDATE again SET {one.insert}")
        damage("INSERT INTO billing_usagerecord SELECT * FROM again")
        damage("DROP TABLE again")


def test_a_late_pricing_at_a_superseded_price_is_found(prices: dict[str, Price]) -> None:
    event = priced_event(prices["now"])
    settle(event)
    damage("UPDATE billing_usagerecord SET price = NULL, cost = NULL, cost_nano = NULL")
    settle(priced_event(prices["old"], request_id=event["request_id"], part=10_000, kind="pricing"))
    (said,) = found("costs").differences
    assert said.startswith(f"{event['request_id']}/10000: its price {prices['old']} was superseded")


def test_a_target_that_is_gone_is_not_unknown(prices: dict[str, Price]) -> None:
    settle(priced_event(prices["elsewhere"], target="elsewhere"))
    Pool.objects.filter(name="elsewhere").delete()
    assert found("records").total == 0


def test_a_superseded_price_is_found_in_hours_whose_records_are_gone(prices: dict[str, Price]) -> None:
    settle(priced_event(prices["now"]))
    damage(f"UPDATE billing_usagehour SET price = '{prices['old']}', cost = {priced_event(prices['old'])['cost']}")
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM billing_usagehour")
        assert cursor.fetchone() == (1,)
    (said,) = found("hour_costs").differences
    assert f"its price {prices['old']} did not hold in that hour" in said
