"""The checks of costs: by the record, by the hour, and that a correction has its record."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from billing.ledger_check.tests.books import damage, found, priced_event, set_price, settle
from billing.models import Price
from billing.tests.stream import usage_event

pytestmark = pytest.mark.django_db


def test_it_agrees_with_what_was_charged() -> None:
    price = set_price()
    free = {"cost": None, "cost_nano": None, "price": None}
    event = priced_event(price, input_tokens=10**12, cached_input_tokens=1, output_tokens=3)
    settle(event, priced_event(price) | {"part": 1, "request_id": event["request_id"]}, usage_event(**free))
    assert [found(name).total for name in ("costs", "hour_costs", "corrections")] == [0, 0, 0]


@pytest.mark.parametrize(
    "change",
    [
        "cost = cost + 0.000000000001, cost_nano = ceil((cost + 0.000000000001) * 1000000000)",
        "cost_nano = cost_nano + 1",
        "output_tokens = output_tokens + 1",
        "cached_input_tokens = cached_input_tokens - 1",
        "cost = NULL, cost_nano = NULL",
        "price = NULL",
        "price = 'gone@1'",
        "currency = 'USD'",
        "model = 'other'",
        "admitted_at = admitted_at - interval '1 second'",
    ],
)
def test_it_sees_a_record_that_is_not_charged_at_its_price(change: str) -> None:
    settle(priced_event(set_price()), priced_event(set_price("second")))
    damage("ALTER TABLE billing_usagerecord DROP CONSTRAINT billing_usagerecord_nano")
    damage("UPDATE billing_price SET effective_from = (SELECT min(admitted_at) FROM billing_usagerecord)")
    damage(f"UPDATE billing_usagerecord SET {change} WHERE model = 'demo'")
    outcome = found("costs")
    assert (outcome.compared, outcome.total) == (2, 1), outcome


def test_it_sees_a_price_of_another_tenant_or_target() -> None:
    price = set_price()
    settle(priced_event(price), priced_event(price, tenant="globex"))
    damage("UPDATE billing_price SET tenant = 'acme'")
    assert "globex" not in found("costs").differences[0]
    assert found("costs").total == 1
    damage("UPDATE billing_price SET target = 'elsewhere'")
    assert found("costs").total == 2


def test_a_price_counts_from_its_millisecond_on() -> None:
    moment = timezone.now().replace(microsecond=123_000) - timedelta(minutes=1)
    price = Price.objects.create(
        model="demo",
        currency="EUR",
        input=Decimal(1),
        cached_input=Decimal(1),
        output=Decimal(1),
        effective_from=moment,
    )
    event = priced_event(price, moment)
    settle(event)
    assert found("costs").total == 0
    damage(f"UPDATE billing_price SET effective_from = '{moment + timedelta(microseconds=1)}'")
    (said,) = found("costs").differences
    assert said == f"{event['request_id']}/0: its price {price.version} had not begun, and none held"


def test_it_sees_an_hour_whose_cost_is_not_that_of_its_tokens() -> None:
    settle(priced_event(set_price()))
    assert found("hour_costs").total == 0
    damage("UPDATE billing_usagehour SET output_tokens = output_tokens + 1")
    assert found("hour_costs").total == 1


def test_it_sees_a_correction_of_nothing() -> None:
    settle(priced_event(set_price()) | {"part": 1})
    assert found("corrections").total == 1
