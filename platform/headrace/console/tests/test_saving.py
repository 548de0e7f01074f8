"""The admin asks before it saves what acts on live traffic or money, and shows what changes, before and after."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse

from billing.models import Budget, Price
from billing.models.price import LEAD
from headrace.apply.tests.documents import apply
from headrace_dev.testing.database_clock import database_now
from headrace_dev.testing.questions import say_yes, words
from routing.models import Model, Route
from tenants.models import AuditEntry

pytestmark = pytest.mark.django_db
DOCUMENT = """
pools:
  h100: {engine: sglang, model: demo, gpu_hour_cost: 2, cost_currency: EUR}
providers:
  hosted: {base_url: "http://127.0.0.1:9/v1"}
models:
  demo:
    context_window: 4096
    prices: [{currency: EUR, input: 1, cached_input: 0.1, output: 2}]
    route: {targets: [{pool: h100, weight: 1}]}
tenants:
  acme: {name: Acme, currency: EUR}
  globex: {name: Globex, currency: EUR}
  initech: {name: Initech, currency: USD}
"""
ROUTE, MODEL = (reverse(f"admin:routing_{name}_change", args=["demo"]) for name in ("route", "model"))
NEW_PRICE = reverse("admin:billing_price_add")
ONE = dict.fromkeys(("input", "cached_input", "output"), Decimal(1))
RATES = {"input": "1.5", "cached_input": "0.1", "output": "2"}


@pytest.fixture(autouse=True)
def installation() -> None:
    apply(DOCUMENT)


def route_form(**changed: object) -> dict[str, object]:
    route = Route.objects.get(model="demo")
    target = route.targets.get()
    form = {
        field.name: value
        for field in Route._meta.concrete_fields
        if field.name != "model" and (value := getattr(route, field.name)) is not None
    }
    row = {"id": target.pk, "route": "demo", "pool": "h100", "weight": 1, "position": 0}
    return (
        form
        | {"targets-TOTAL_FORMS": 1, "targets-INITIAL_FORMS": 1}
        | {f"targets-0-{name}": value for name, value in row.items()}
        | changed
    )


def test_it_asks_before_it_changes_a_route(alice: Client) -> None:
    second = {"targets-1-provider": "hosted", "targets-1-upstream_model": "big", "targets-1-weight": "3"}
    form = route_form(policy="round_robin", total_timeout=9) | {"targets-TOTAL_FORMS": 2} | second
    asking = alice.post(ROUTE, form | {"_continue": "1"})
    shown = words(asking)
    assert "New requests for demo, of every tenant that may call it, are sent by this within a second." in shown
    assert "Target 2 – hosted, as big, weight 3 Policy prefix aware round robin Total timeout 600 s 9 s" in shown
    assert "Target 1" not in shown
    route = Route.objects.get(model="demo")
    assert (route.policy, route.targets.count()) == ("prefix_aware", 1)
    changes = AuditEntry.objects.count()
    assert say_yes(alice, ROUTE, asking).headers["Location"] == ROUTE
    route.refresh_from_db()
    assert (route.policy, route.total_timeout) == ("round_robin", 9)
    assert [target.slug for target in route.targets.all()] == ["h100", "hosted"]
    made = AuditEntry.objects.all()[: AuditEntry.objects.count() - changes]
    assert {(entry.who, entry.origin) for entry in made} == {("alice-the-operator", "192.0.2.7")}


def test_it_says_that_a_route_would_lead_nowhere(alice: Client) -> None:
    shown = words(alice.post(ROUTE, route_form() | {"targets-0-DELETE": "on"}))
    assert "every new request for demo is refused" in shown
    assert "Target 1 h100, weight 1 –" in shown


def test_it_does_not_ask_where_nothing_changes(alice: Client) -> None:
    assert alice.post(ROUTE, route_form()).status_code == 302


def test_it_takes_no_yes_to_what_is_wrong(alice: Client) -> None:
    wrong = alice.post(ROUTE, route_form(total_timeout=-1, sure="yes"))
    assert b"hr-question" not in wrong.content
    assert Route.objects.get(model="demo").total_timeout == 600


def test_it_takes_no_yes_to_what_somebody_else_has_changed_meanwhile(alice: Client) -> None:
    asking = alice.post(ROUTE, route_form(total_timeout=9))
    Route.objects.update(policy="round_robin")
    again = say_yes(alice, ROUTE, asking)
    shown = words(again)
    assert "It was changed by somebody else while you were asked" in shown
    assert "Policy round robin prefix aware Total timeout 600 s 9 s" in shown
    assert Route.objects.get(model="demo").total_timeout == 600
    say_yes(alice, ROUTE, again)
    route = Route.objects.get(model="demo")
    assert (route.policy, route.total_timeout) == ("prefix_aware", 9)


def test_it_asks_before_it_switches_a_model_off(alice: Client) -> None:
    asking = alice.post(MODEL, {"context_window": 4096, "default_max_tokens": 1024})
    assert "While it is off, all other requests for it are refused. What changes Now Then State on off" in words(asking)
    assert Model.objects.get().enabled
    say_yes(alice, MODEL, asking)
    assert not Model.objects.get().enabled


def price_form(moment: datetime | None = None, **scope: str) -> dict[str, str]:
    when = (f"{moment:%Y-%m-%d}", f"{moment:%H:%M:%S}") if moment else ("", "")
    return (
        {"model": "demo", "currency": "EUR", "effective_from_0": when[0], "effective_from_1": when[1]} | RATES | scope
    )


def test_it_says_what_a_new_price_changes_and_for_whom(alice: Client) -> None:
    first = Price.objects.get()
    Price.objects.create(model="demo", tenant="globex", **ONE, currency="EUR")
    Price.objects.create(model="demo", tenant="initech", **ONE, currency="USD")
    moment = datetime(2100, 1, 1, 12, tzinfo=UTC)
    asking = alice.post(NEW_PRICE, price_form(moment))
    shown = words(asking)
    assert "every tenant with EUR as its currency (2 now) pays for demo from 2100-01-01 12:00 UTC on" in shown
    assert f"It takes the place of {first}." in shown
    assert "Not for globex (demo@2): those come first." in shown
    assert (
        "Uncached input, per million tokens 1.00 EUR 1.50 EUR Cached input, per million tokens 0.10 EUR the s" in shown
    )
    assert Price.objects.count() == 3
    assert say_yes(alice, NEW_PRICE, asking).status_code == 302
    price = Price.objects.get(effective_from=moment)
    assert price.input == Decimal("1.5")
    assert AuditEntry.objects.all()[0].who == "alice-the-operator"


def test_it_sets_a_price_at_once_however_late_the_yes(alice: Client) -> None:
    asking = alice.post(NEW_PRICE, price_form(tenant="acme"))
    shown = words(asking)
    assert "It is what acme pays for demo as soon as you say yes." in shown
    assert "It takes the place of demo@1, which stays for all tenants." in shown
    assert "In force from " in shown
    later = database_now()
    say_yes(alice, NEW_PRICE, asking)
    assert later <= Price.objects.get(tenant="acme").effective_from <= database_now() + LEAD


def test_it_asks_before_it_changes_a_price_to_come_and_lets_none_begin_in_the_past(alice: Client) -> None:
    moment = datetime(2100, 1, 1, tzinfo=UTC)
    price = Price.objects.create(model="demo", currency="EUR", effective_from=moment, **ONE)
    page = reverse("admin:billing_price_change", args=[price.pk])
    asking = alice.post(page, price_form(moment))
    assert "In force from 2100-01-01 00:00 UTC the same" in words(asking)
    assert Price.objects.get(pk=price.pk).input == 1
    say_yes(alice, page, asking)
    assert Price.objects.get(pk=price.pk).input == Decimal("1.5")
    wrong = alice.post(page, price_form(datetime(2020, 1, 1, tzinfo=UTC)) | {"sure": "yes"})
    assert b"The past stays as it was charged" in wrong.content


def budget_form(**changed: str) -> dict[str, str]:
    fields = {"tenant": "acme", "name": "monthly", "amount": "100", "period": "month", "hard": "on", "enabled": "on"}
    return fields | {"set_by": "operator", "thresholds": "80,100"} | changed


def test_it_says_what_a_budget_refuses(alice: Client) -> None:
    page = reverse("admin:billing_budget_add")
    asking = alice.post(page, budget_form(model="demo"))
    assert (
        "Within a second requests of acme with model demo that might pass 100.00 EUR a month are refused. What runs is"
        " not cut off. What changes Now Then Amount – 100.00 EUR a month" in words(asking)
    )
    assert not Budget.objects.exists()
    say_yes(alice, page, asking)
    page = reverse("admin:billing_budget_change", args=[Budget.objects.get().pk])
    form = budget_form(amount="50", extra="25", extra_until_0="2100-01-01", extra_until_1="00:00")
    shown = words(alice.post(page, form))
    assert "that might pass 75.00 EUR a month are refused" in shown
    assert "Amount 100.00 EUR a month 50.00 EUR a month Temporary increase – 25.00 EUR until 2100-01-01" in shown
    del form["hard"]
    assert "It refuses nothing" in words(alice.post(page, form))
    del form["enabled"]
    assert "Within a second nothing holds requests of acme with model demo to it" in words(alice.post(page, form))
    assert Budget.objects.get().amount == 100
