"""Usage that came without a price is priced by corrections, once, and its invoice can be finalised."""

from decimal import Decimal
from typing import Any

import pytest
import redis
from django.conf import settings
from django.db.models import Sum

from billing.budgets import counters
from billing.budgets.alerts import find_alerts
from billing.budgets.balances import standings
from billing.drain import drain_all
from billing.invoicing.errors import CannotFinalise
from billing.invoicing.records import records_behind
from billing.invoicing.tests.making import (
    close,
    event_of,
    finalise,
    make_customer,
    make_price,
    make_seller,
    stated,
    use,
    utc,
    write,
)
from billing.late_pricing import price_unpriced
from billing.ledger_check.report import check
from billing.ledger_check.tests.books import make_caller
from billing.models import Budget, TargetHour, UsageCorrection, UsageHour
from billing.tests.stream import connect
from tenants.models import Tenant

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def acme() -> None:
    make_seller()
    make_customer()
    make_caller()


def price(client: "redis.Redis", **options: object) -> tuple[dict[str, int], int]:
    """Price and drain: rows by price, and how many are left."""
    done = price_unpriced(client, **options)  # type: ignore[arg-type]
    drain_all(client)
    return dict(done.priced), sum(done.left.values())


def test_it_unblocks_the_invoice_and_counts_no_token_twice() -> None:
    at_its_price = make_price()
    use("2026-03-05 12:00", at_its_price, tokens=(1_000_000, 0, 0))
    late = make_price("other", input="3", effective_from=utc("2026-03-20"))
    first = use("2026-03-05 12:00", model="other", tokens=(1_000_000, 200_000, 10))
    use("2026-03-25 12:00", model="other", tokens=(2_000_000, 0, 0))
    (draft,) = close(utc("2026-04-02"))
    with pytest.raises(CannotFinalise, match="3,000,010 tokens of 2026-03 have no price"):
        finalise(draft)
    with connect() as client:
        assert price(client) == ({late.version: 2}, 0)
        assert price(client) == ({}, 0)
        report = check(client, spool=settings.HOME / "spool")
        assert report.is_clean, list(report.as_lines())
    invoice = finalise(draft)
    assert stated(invoice)[1:] == [
        ("usage", "2026-03", "web", "other", "uncached", "other@1", 2_800_000, Decimal("8.40")),
        ("usage", "2026-03", "web", "other", "cached", "other@1", 200_000, Decimal("0.02")),
        ("usage", "2026-03", "web", "other", "output", "other@1", 10, Decimal("0.00")),
    ]
    assert [str(row.request_id) for row in records_behind(invoice.lines.get(position=3)).rows()] == [first]
    assert UsageHour.objects.aggregate(Sum("requests"))["requests__sum"] == 3
    charged = UsageCorrection.objects.order_by("cost_nano").values_list("kind", "cost_nano")
    assert list(charged) == [("pricing", 2_420_020_000), ("pricing", 6_000_000_000)]


def test_a_correction_that_comes_later_has_the_price_of_what_it_corrects() -> None:
    """Whatever is in force by then: what is given back is what was charged."""
    at = utc("2026-03-05 12:00")
    record = event_of(at, model="other", tokens=(1_000_000, 0, 0), status="reaped")
    write(record)
    first = make_price("other", input="1", effective_from=utc("2026-03-20"))
    with connect() as client:
        assert price(client) == ({first.version: 1}, 0)
        make_price("other", input="9", effective_from=utc("2026-03-21"))
        write(record | {"part": 1, "input_tokens": -400_000, "cached_input_tokens": 0, "output_tokens": 0})
        assert price(client) == ({first.version: 1}, 0)
    assert UsageHour.objects.aggregate(Sum("cost"))["cost__sum"] == Decimal("0.6")


def test_it_leaves_what_no_price_fits_and_writes_nothing_when_asked_to_look() -> None:
    make_price("other", currency="USD")
    make_price("third", tenant="globex")
    for model in ("other", "third", "demo"):
        use("2026-03-05 12:00", model=model)
    with connect() as client:
        assert price(client) == ({}, 3)
        make_price()
        assert price(client, dry_run=True) == ({"demo@1": 1}, 2)
        assert price(client, tenant="globex") == ({}, 0)
        assert UsageCorrection.objects.count() == 0
        assert price(client, tenant="acme") == ({"demo@1": 1}, 2)


def test_it_adjusts_an_invoice_that_was_finalised_before() -> None:
    own = make_price()
    use("2026-03-05 12:00", own, tokens=(1_000_000, 0, 0))
    finalise(close(utc("2026-04-02"))[0])
    use("2026-03-05 12:00", model="other", tokens=(1_000_000, 0, 0))
    make_price("other", input="3")
    with connect() as client:
        price(client)
    (april,) = close(utc("2026-05-02"))
    assert stated(april) == [
        ("adjustment", "2026-03", "web", "other", "uncached", "other@1", 1_000_000, Decimal("3.00")),
    ]
    assert finalise(april).is_finalised


def test_it_leaves_the_sums_of_tokens_as_they_were_and_nothing_unpriced() -> None:
    use("2026-03-05 12:00", model="other", tokens=(1_000_000, 200_000, 10))
    use("2026-03-05 12:10", model="other", tokens=(2_000_000, 0, 20))
    make_price("other", input="3")

    def told() -> list[int]:
        names = ("requests", "unpriced", "input_tokens", "cached_input_tokens", "output_tokens")
        return list(UsageHour.objects.aggregate(**{name: UsageHour.total(name) for name in names}).values())

    assert told() == [2, 2, 3_000_000, 200_000, 30]
    with connect() as client:
        price(client)
    assert told() == [2, 0, 3_000_000, 200_000, 30]
    (hour,) = TargetHour.objects.all()
    assert (hour.input_tokens, hour.cached_input_tokens, hour.output_tokens) == (3_000_000, 200_000, 30)
    assert hour.cost == UsageHour.objects.aggregate(Sum("cost"))["cost__sum"] == Decimal("8.42006")


def test_budgets_take_it_and_tell_of_it() -> None:
    """In the period in which it was used: here all time, of one model."""
    names: dict[str, Any] = {"tenant": Tenant.objects.get(), "period": "total", "hard": False, "thresholds": [50]}
    budget = Budget.objects.create(name="of-other", amount=Decimal(5), model="other", **names)
    others = Budget.objects.create(name="of-demo", amount=Decimal(5), model="demo", **names)
    use("2026-03-05 12:00", model="other", tokens=(1_000_000, 0, 0))
    with connect() as client:
        counters.keep(client)
        assert standings(client, [budget])[0].spent == 0
        assert find_alerts(client) == []
        make_price("other", input="3", effective_from=utc("2026-03-20"))
        price_unpriced(client)
        counters.keep(client)
        drain_all(client)
        assert [one.spent for one in standings(client, [budget, others])] == [3, 0]
        assert [(alert.budget, alert.threshold) for alert in find_alerts(client)] == [(budget, 50)]
        report = check(client, spool=settings.HOME / "spool")
        assert report.is_clean, list(report.as_lines())
