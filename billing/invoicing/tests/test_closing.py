"""A period that is over gets one draft that says what the hours say, however often and by whomever it is closed."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from django.db import IntegrityError, transaction

from billing.invoicing.closing import close_all
from billing.invoicing.errors import CannotFinalise
from billing.invoicing.tests.making import (
    at_once,
    close,
    finalise,
    make_customer,
    make_price,
    make_seller,
    stated,
    use,
    utc,
)
from billing.models import BillingAccount, Invoice, Price
from tenants.models import AuditEntry, Tenant
from tenants.tests.cast import sql

pytestmark = pytest.mark.django_db

EDGES = {
    "Europe/Berlin": "2026-02-28 23:00",
    "Asia/Kolkata": "2026-02-28 18:30",
    "Asia/Kathmandu": "2026-02-28 18:15",
    "Australia/Lord_Howe": "2026-02-28 13:00",
    "Pacific/Auckland": "2026-02-28 11:00",
    "Pacific/Kiritimati": "2026-02-28 10:00",
    "America/New_York": "2026-03-01 05:00",
}


def test_drafting_anew_is_not_on_the_audit_trail(acme: Tenant, price: Price) -> None:
    use("2026-03-05 12:00", price)
    for day in (2, 3):
        use("2026-03-06 12:00", price, key=f"key-{day}")
        (march,) = close(utc(f"2026-04-0{day}"))
    assert march.drafted_at == utc("2026-04-03")
    assert [entry.action for entry in AuditEntry.objects.filter(subject=f"billing_invoice {march.pk}")] == ["created"]


def test_it_states_tokens_by_project_model_class_and_price(acme: Tenant, price: Price) -> None:
    second = make_price(output="3", effective_from=utc("2026-03-10"))
    use("2026-03-05 12:00", price, tokens=(1_000_000, 400_000, 50_000))
    use("2026-03-06 12:00", price, tokens=(500_000, 0, 0), key="another")
    use("2026-03-11 12:00", second, tokens=(1_000_000, 0, 7))
    use("2026-03-11 12:00", price, tokens=(10, 10, 0), project="batch")
    use("2026-04-01 12:00", price)
    (march, april) = close(utc("2026-05-02"))
    assert stated(march) == [
        ("usage", "2026-03", "batch", "demo", "cached", "demo@1", 10, Decimal("0.00")),
        ("usage", "2026-03", "web", "demo", "uncached", "demo@1", 1_100_000, Decimal("0.55")),
        ("usage", "2026-03", "web", "demo", "cached", "demo@1", 400_000, Decimal("0.04")),
        ("usage", "2026-03", "web", "demo", "output", "demo@1", 50_000, Decimal("0.10")),
        ("usage", "2026-03", "web", "demo", "uncached", "demo@2", 1_000_000, Decimal("0.50")),
        ("usage", "2026-03", "web", "demo", "output", "demo@2", 7, Decimal("0.00")),
    ]
    assert (march.label, march.total, april.label) == ("2026-03", Decimal("1.19"), "2026-04")


@pytest.mark.parametrize("time_zone", EDGES)
def test_it_puts_what_was_admitted_at_the_edge_into_the_period_it_belongs_to(price: Price, time_zone: str) -> None:
    make_customer(time_zone=time_zone)
    edge = utc(EDGES[time_zone])
    assert edge.astimezone(ZoneInfo(time_zone)).strftime("%d %H:%M") == "01 00:00"
    use(datetime.fromtimestamp(edge.timestamp() - 0.001, UTC), price, tokens=(1, 0, 0))
    use(edge, price, tokens=(2, 0, 0))
    drafts = close(utc("2026-04-02"))
    assert [(draft.label, line.quantity) for draft in drafts for line in draft.lines.all()] == [
        ("2026-02", 1),
        ("2026-03", 2),
    ]


def test_it_leaves_out_no_hour_when_clocks_change_and_no_leap_day(acme: Tenant, price: Price) -> None:
    for moment in (
        "2028-02-29 22:59:59",
        "2028-03-26 00:30",
        "2028-03-26 01:30",
        "2028-10-29 00:30",
        "2028-10-29 01:30",
    ):
        use(moment, price, tokens=(1, 0, 0))
    drafts = close(utc("2028-11-30"))
    assert [(draft.label, draft.lines.get().quantity) for draft in drafts] == [
        ("2028-02", 1),
        ("2028-03", 2),
        ("2028-10", 2),
    ]


def test_it_makes_the_same_invoice_each_time(acme: Tenant, price: Price) -> None:
    use("2026-03-05 12:00", price, tokens=(1_000_000, 0, 0))
    (first,) = close()
    (second,) = close()
    assert (first.pk, stated(first)) == (second.pk, stated(second))
    use("2026-03-05 13:00", price, tokens=(1_000_000, 0, 0))
    (third,) = close()
    assert (third.pk, third.total, third.lines.count()) == (first.pk, Decimal("1.00"), 1)
    assert Invoice.objects.count() == 1


def test_it_makes_one_draft_each_hour_over_the_turn_of_the_month_at_the_far_ends_of_the_day(price: Price) -> None:
    for slug, zone in (("east", "Pacific/Kiritimati"), ("west", "Pacific/Pago_Pago"), ("south", "Pacific/Auckland")):
        make_customer(slug, time_zone=zone)
        use("2026-03-15 12:00", price, tenant=slug)
    seen = [
        sorted(invoice.tenant_id for invoice in close(utc("2026-03-31 09:00") + timedelta(hours=hour)))
        for hour in range(28)
    ]
    assert seen[0] == []
    assert seen[1] == ["east"]  # 10:00 UTC
    assert seen[2] == ["east", "south"]  # 11:00
    assert seen[25] == ["east", "south"]
    assert seen[26] == ["east", "south", "west"]  # 11:00 of the next day
    assert Invoice.objects.count() == 3


def test_it_closes_no_period_before_it_is_over_nor_one_without_anything(acme: Tenant, price: Price) -> None:
    assert close() == []
    use("2026-03-31 21:00", price)
    assert close(utc("2026-03-31 21:59:59")) == []
    assert [draft.label for draft in close(utc("2026-03-31 22:00"))] == ["2026-03"]


def test_it_drafts_usage_that_waits_for_a_price_though_there_is_nothing_to_state(acme: Tenant) -> None:
    """Else nobody would see that it is never billed."""
    use("2026-03-05 12:00")
    (march,) = close(utc("2026-04-02"))
    assert not stated(march)
    assert march.total == 0
    with pytest.raises(CannotFinalise, match="1,050 tokens of 2026-03 have no price"):
        finalise(march)
    assert close(utc("2026-04-03")) == [march]


def test_it_closes_the_month_a_tenant_came_in_as_any_other(price: Price) -> None:
    make_customer(created_at=utc("2026-03-20 15:00"), minimum_fee="10")
    use("2026-03-21 12:00", price)
    (march,) = close(utc("2026-04-02"))
    assert (march.period_start, march.period_end) == (utc("2026-03-01"), utc("2026-04-01"))
    assert march.total == 10


def test_it_asks_the_minimum_fee_of_months_without_use_from_the_account_on(acme: Tenant) -> None:
    BillingAccount.objects.update(minimum_fee="25", since=utc("2026-03-10"))
    drafts = close(utc("2026-05-02"))
    assert [(draft.label, draft.total) for draft in drafts] == [("2026-03", Decimal(25)), ("2026-04", Decimal(25))]


def test_a_currency_is_fixed_once_something_was_used_in_it(acme: Tenant) -> None:
    """Else what its budgets have spent, and hold, would be of two."""
    Tenant.objects.filter(slug="acme").update(currency="USD")
    use("2026-03-05 12:00", make_price(currency="USD"), currency="USD")
    with pytest.raises(IntegrityError, match="the currency of tenant acme is fixed"), transaction.atomic():
        Tenant.objects.filter(slug="acme").update(currency="EUR")
    Tenant.objects.filter(slug="acme").update(currency="USD", name="Acme Inc.")


def test_it_never_sums_currencies(acme: Tenant, price: Price) -> None:
    dollars = make_price(currency="USD", input="5")
    use("2026-03-05 12:00", price, tokens=(1_000_000, 0, 0))
    use("2026-03-05 12:00", dollars, tokens=(1_000_000, 0, 0), currency="USD")
    drafts = close()
    assert [(draft.currency, draft.total) for draft in drafts] == [("EUR", Decimal("0.50")), ("USD", Decimal("5.00"))]


def test_it_charges_nothing_for_shadow_copies(acme: Tenant, price: Price) -> None:
    use("2026-03-05 12:00", price, kind="shadow", tokens=(1_000_000, 0, 0))
    assert close() == []


def test_it_goes_on_with_the_others_when_one_tenant_fails(acme: Tenant, price: Price) -> None:
    for slug in ("before", "zeta"):
        make_customer(slug)
        use("2026-03-05 12:00", price, tenant=slug)
    use("2026-03-05 12:00", price)
    sql("UPDATE billing_tenantzone SET time_zone = 'Nowhere/Atlantis' WHERE tenant = 'acme'")
    closed = close_all(now=utc("2026-04-05"))
    assert [draft.tenant_id for draft in closed.drafts] == ["before", "zeta"]
    assert [slug for slug, _ in closed.failed] == ["acme"]
    assert "Atlantis" in closed.failed[0][1]


@pytest.mark.django_db(transaction=True)
def test_it_makes_one_invoice_when_workers_close_at_once() -> None:
    make_seller()
    price = make_price()
    for slug in ("acme", "globex", "hooli"):
        make_customer(slug, time_zone="Pacific/Auckland")
        use("2026-03-05 12:00", price, tenant=slug)
    at_once(4, lambda _: [close(utc("2026-04-05")) for _ in range(3)])
    assert Invoice.objects.count() == 3
    assert [invoice.lines.count() for invoice in Invoice.objects.all()] == [3, 3, 3]


def test_it_changes_the_zone_from_the_next_period_on(acme: Tenant, price: Price) -> None:
    now = datetime.now(UTC)
    use(now, price, tokens=(1, 0, 0))
    Tenant.objects.filter(pk="acme").update(time_zone="Pacific/Kiritimati")
    sql("UPDATE billing_tenantzone SET month = '2026-03-01', since = '2026-02-28 23:00Z' WHERE month > '2000-01-01'")
    for moment in ("2026-02-28 22:59:59", "2026-02-28 23:00", "2026-03-31 09:59:59", "2026-03-31 10:00"):
        use(moment, price, tokens=(10, 0, 0))
    drafts = {draft.label: draft for draft in close(utc("2026-05-01"))}
    assert [(label, drafts[label].lines.get().quantity) for label in ("2026-02", "2026-03", "2026-04")] == [
        ("2026-02", 10),
        ("2026-03", 20),
        ("2026-04", 10),
    ]
    assert drafts["2026-02"].period_end == drafts["2026-03"].period_start == utc("2026-02-28 23:00")
