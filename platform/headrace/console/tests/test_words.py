"""The operators' pages say things in words and units: no raw column, no button that leads nowhere."""

import datetime as dt

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from billing.models import BudgetAdjustment, BudgetAlert, DeadLetter, ExchangeRate, LedgerCheckRun
from billing.models.budget import Budget
from headrace.apply.tests.documents import EVERYTHING, apply
from tenants.models import Tenant

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def installation() -> None:
    apply(EVERYTHING)


def text(client: Client, name: str, *args: object, **query: str) -> str:
    return client.get(reverse(f"admin:{name}", args=args), query).content.decode()


def test_it_says_what_was_put_onto_a_budget_in_its_currency(alice: Client) -> None:
    tenant = Tenant.objects.get(slug="acme")
    budget = Budget.objects.create(tenant=tenant, name="trial", amount=5)
    common = {"tenant": tenant, "budget": budget, "window_start": timezone.now()}
    change = BudgetAdjustment.objects.create(nano=-1_500_000_000, reason="outage", who="olga", **common)
    page = text(alice, "billing_budgetadjustment_change", change.pk)
    assert f"1.500000\u00a0{tenant.currency}" in page
    assert "1500000000" not in page
    alert = BudgetAlert.objects.create(threshold=80, spent=4, amount=5, **common)
    page = text(alice, "billing_budgetalert_change", alert.pk)
    for words in ("80\u00a0%", f"4.00\u00a0{tenant.currency}", f"5.00\u00a0{tenant.currency}"):
        assert words in page


def test_it_tells_what_the_checks_found_and_how_much_more(alice: Client) -> None:
    found = {"name": "hour_costs", "text": "each <hour>", "compared": 1707, "total": 3, "differences": ["a < b"]}
    run = LedgerCheckRun.objects.create(differences=3, report={"checks": [found]})
    page = text(alice, "billing_ledgercheckrun_change", run.pk)
    for words in ("Hour costs: 1,707 compared, 3 differ", "each &lt;hour&gt;", "<li>a &lt; b</li>", "and 2 more"):
        assert words in page


def test_it_filters_by_what_has_happened_in_words(alice: Client) -> None:
    DeadLetter.objects.create(entry="1-0", event="{}", reason="the one that waits")
    DeadLetter.objects.create(entry="2-0", event="{}", reason="the one replayed", replayed_at=timezone.now())
    everything = text(alice, "billing_deadletter_changelist")
    assert "Replayed" in everything
    assert "Not empty" not in everything
    page = text(alice, "billing_deadletter_changelist", replayed_at__isempty="1")
    assert "the one that waits" in page
    assert "the one replayed" not in page


def test_it_tells_an_empty_list_from_a_search_that_finds_nothing(alice: Client) -> None:
    assert "None yet" in text(alice, "billing_exchangerate_changelist")
    ExchangeRate.objects.create(base="EUR", quote="USD", rate="1.0842", day=dt.date(2026, 3, 1))
    assert ">1.0842<" in text(alice, "billing_exchangerate_changelist")
    assert "Nothing matches" in text(alice, "tenants_tenant_changelist", q="nobody")


def test_it_writes_a_rows_own_name_as_it_is(alice: Client) -> None:
    page = text(alice, "tenants_tenant_change", "acme")
    header = page.partition("<header")[2] or page
    assert "Tenants" in header
    assert "\n        acme\n" in page


def test_it_offers_no_deletion_of_a_model_that_records_name(alice: Client) -> None:
    assert "Delete" not in text(alice, "routing_model_change", "demo")
