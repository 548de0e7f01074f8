"""The dearest tokens there can be, any number of them in one hour: every sum is exact, and nothing is set aside."""

import csv
import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
import redis
from django.db import connection
from django.utils import timezone

from billing import drain
from billing.budgets import changing, counters
from billing.budgets.balances import standings
from billing.events import MOST_TOKENS
from billing.exports.formats import FORMATS, export
from billing.invoicing.content import stated_by
from billing.invoicing.tests.making import close, event_of, finalise, make_customer, make_price, make_seller
from billing.ledger_check.tests.books import found
from billing.models import Budget, DeadLetter, Invoice, TargetHour, UsageDay, UsageHour
from billing.models.price import DEAREST
from billing.tests.stream import append, connect
from tenants.meters import counters as meters
from tenants.meters.counters import WANTED
from tenants.meters.holds import USAGE
from tenants.meters.meter import COST as COST_MEASURE
from tenants.meters.meter import MOST_NANO
from tenants.meters.scripts import CORRECT

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 5, 10, 15, tzinfo=UTC)
COST = 2 * MOST_TOKENS * DEAREST.scaleb(-6)  # of one request


def dearest() -> Any:
    make_seller()
    make_customer()
    return make_price(input=str(DEAREST), cached=str(DEAREST), output=str(DEAREST))


def events(price: Any, number: int, at: datetime = AT) -> list[Any]:
    """Of the most tokens, and one token more than a round sum, so that a digit that is lost is missed."""
    most = [event_of(at, price, tokens=(MOST_TOKENS, 0, MOST_TOKENS)) for _ in range(number)]
    return [*most, event_of(at, price, tokens=(1, 0, 0))]


def settle(*settled: Any) -> None:
    with connect() as client:
        append(client, *settled)
        drain.drain_all(client)


def test_no_number_of_the_dearest_requests_overflows_a_sum() -> None:
    price = dearest()
    with connection.cursor() as cursor:
        cursor.execute("SELECT headrace_usage_partition('2026-03-01')")
    total = 0 * COST
    for number in (1, 9, 40):  # begun, and added to
        settle(*events(price, number))
        total += number * COST + DEAREST.scaleb(-6)
    assert not DeadLetter.objects.exists()
    for model in (UsageHour, UsageDay):
        row = model.objects.get()
        assert (row.requests, row.cost) == (53, total)
        assert row.charged_nano == 50 * MOST_NANO + 3 * 10**12
        assert row.cost_nano == MOST_NANO
    assert TargetHour.objects.get().cost == total
    for name in ("hours", "days", "target_hours", "costs", "hour_costs"):
        outcome = found(name)
        assert (outcome.total, outcome.compared > 0) == (0, True), outcome
    [draft] = close()
    invoice = finalise(draft)
    assert (invoice.net, sum(line.exact for line in invoice.lines.all())) == (total, total)
    assert stated_by(Invoice.objects.get())["total"] == f"{total:.2f}"
    rows = csv.DictReader(b"".join(export(invoice, "csv")).decode("utf-8-sig").splitlines())
    assert sum(Decimal(row["amount"]) for row in rows) == total
    assert all(b"".join(export(invoice, name)) for name in FORMATS)
    assert (found("invoices").total, found("invoiced_usage").total) == (0, 0)


def budget(**fields: Any) -> Budget:
    return Budget.objects.create(tenant_id="acme", name="monthly", amount=Decimal(4 * 10**9), **fields)


def counter(client: "redis.Redis", one: Budget) -> int:
    [part] = counters.current([one], timezone.now())
    [known] = meters.read(client, [part.key])
    assert known is not None
    return known.spent


def test_a_budget_that_cannot_count_so_far_is_spent_until_the_ledger_says_otherwise() -> None:
    price, now = dearest(), timezone.now()
    with connect() as client:
        one = budget()
        settle(*events(price, 3, now))
        counters.keep(client)
        assert counter(client, one) == MOST_NANO
        assert [standing.left for standing in standings(client, [one])] == [0]
        [spent] = counters.ledger_sums(counters.current([one], now))
        assert spent == 3 * MOST_NANO + 10**12
        assert found("budgets").total == 0
        assert changing.reset_budget(client, budget=one, who="ann", origin="test", reason="x") is not None
        assert (counter(client, one), found("budgets").total) == (0, 0)


def test_what_is_given_back_is_not_taken_off_a_counter_that_lost_count() -> None:
    price, now = dearest(), timezone.now()
    back = event_of(now, price, tokens=(-MOST_TOKENS, 0, -MOST_TOKENS), part=1)
    with connect() as client:
        one = budget()
        settle(*events(price, 3, now))
        counters.keep(client)
        [part] = counters.current([one], now)
        client.set("hr:done:x", "reaped:x")
        meters = json.dumps([["soft_budget", part.key, "0", "0", COST_MEASURE]])
        more = json.dumps({COST_MEASURE: str(-MOST_NANO)})
        CORRECT.call_sync(client, ["hr:done:x", USAGE], ["reaped:x", json.dumps(back), 60, meters, more])
        assert counter(client, one) == MOST_NANO
        assert client.smismember(WANTED, [part.key]) == [1]
        drain.drain_all(client)
        counters.keep(client)
        assert counters.ledger_sums([part]) == [2 * MOST_NANO + 10**12]
        assert counter(client, one) == MOST_NANO
