"""What reaches the ledger after its period was invoiced stands on the next invoice, once, and points at its records."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection, transaction

from billing.invoicing.finalising import finalise_invoice
from billing.invoicing.locking import lock_invoices
from billing.invoicing.records import records_behind
from billing.invoicing.tests.making import (
    at_once,
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
from billing.invoicing.voiding import void_invoice
from billing.models import Invoice, InvoiceLine, LateUsage, Price
from tenants.models import Tenant

pytestmark = pytest.mark.django_db
MILLION = (1_000_000, 0, 0)


def ids(invoice: Invoice, position: int) -> list[str]:
    return [str(row.request_id) for row in records_behind(invoice.lines.get(position=position)).rows()]


def test_it_puts_late_usage_on_the_next_invoice_once(acme: Tenant, price: Price) -> None:
    in_time = use("2026-03-05 12:00", price, tokens=MILLION)
    march = finalise(close(utc("2026-04-02"))[0])
    late = use("2026-03-06 12:00", price, tokens=MILLION)
    assert close(utc("2026-04-09")) == []  # nothing to put it on yet
    own = use("2026-04-07 12:00", price, tokens=(3_000_000, 0, 0))
    (draft,) = close(utc("2026-05-02"))
    assert stated(draft) == [
        ("usage", "2026-04", "web", "demo", "uncached", "demo@1", 3_000_000, Decimal("1.50")),
        ("adjustment", "2026-03", "web", "demo", "uncached", "demo@1", 1_000_000, Decimal("0.50")),
    ]
    april = finalise(draft)
    assert april.lines.get(position=2).description.startswith("Adjustment for 2026-03: ")
    assert (ids(march, 1), ids(april, 1), ids(april, 2)) == ([in_time], [own], [late])
    use("2026-05-05 12:00", price, tokens=MILLION)
    later = use("2026-03-07 12:00", price, tokens=(2_000_000, 0, 0))
    may = finalise(close(utc("2026-06-02"))[0])
    assert [line[1:2] + line[6:] for line in stated(may)] == [
        ("2026-05", 1_000_000, Decimal("0.50")),
        ("2026-03", 2_000_000, Decimal("1.00")),
    ]
    assert (ids(march, 1), ids(april, 2), ids(may, 2)) == ([in_time], [late], [later])


def test_late_usage_of_a_currency_that_is_used_no_more_has_an_invoice(acme: Tenant, price: Price) -> None:
    dollars = make_price(currency="USD")
    use("2026-02-05 12:00", dollars, tokens=MILLION, currency="USD")
    for draft in close(utc("2026-03-02")):
        finalise(draft)
    late = use("2026-02-06 12:00", dollars, tokens=(2_000_000, 0, 0), currency="USD")
    use("2026-03-05 12:00", price, tokens=MILLION)
    by_currency = {draft.currency: draft for draft in close(utc("2026-05-02"))}
    assert [line[:2] + line[6:] for line in stated(by_currency["USD"])] == [
        ("adjustment", "2026-02", 2_000_000, Decimal("1.00"))
    ]
    issued = {currency: finalise(draft) for currency, draft in by_currency.items()}
    assert ids(issued["USD"], 1) == [late]
    assert close(utc("2026-06-02")) == []


def test_it_leaves_the_late_usage_of_another_currency_to_that_one_s_invoice(acme: Tenant, price: Price) -> None:
    dollars = make_price(currency="USD")
    for month in (3, 4):
        use(f"2026-0{month}-05 12:00", price, tokens=MILLION)
        use(f"2026-0{month}-05 12:00", dollars, tokens=MILLION, currency="USD")
        if month == 3:
            for draft in close(utc("2026-04-02")):
                finalise(draft)
    for row, currency in ((price, "EUR"), (dollars, "USD")):
        use("2026-03-06 12:00", row, tokens=MILLION, currency=currency)
    for currency in ("EUR", "USD"):
        drafts = {draft.currency: draft for draft in close(utc("2026-05-02"))}
        finalise(drafts[currency])
    april = Invoice.objects.filter(period="2026-04-01").order_by("currency")
    assert [[kind for kind, *_ in stated(invoice)] for invoice in april] == [["usage", "adjustment"]] * 2
    assert not LateUsage.objects.filter(invoice=None).exists()
    assert [len(ids(invoice, 2)) for invoice in april] == [1, 1]


def test_it_makes_an_invoice_of_adjustments_alone(acme: Tenant, price: Price) -> None:
    use("2026-03-05 12:00", price, tokens=MILLION)
    finalise(close(utc("2026-04-02"))[0])
    use("2026-03-06 12:00", price, tokens=MILLION)
    (april,) = close(utc("2026-05-02"))
    assert (april.label, april.total) == ("2026-04", Decimal("0.50"))
    assert [draft.label for draft in close(utc("2026-07-02"))] == ["2026-04"]  # on the first, and on no other
    finalise(april)
    assert close(utc("2026-07-02")) == []


def test_it_adjusts_by_corrections_too(acme: Tenant, price: Price) -> None:
    event = event_of(utc("2026-03-05 12:00"), price, tokens=MILLION)
    write(event)
    finalise(close(utc("2026-04-02"))[0])
    write(event_of(utc("2026-03-05 12:00"), price, tokens=(0, 0, 500_000), request_id=event["request_id"], part=1))
    (april,) = close(utc("2026-05-02"))
    assert stated(april) == [
        ("adjustment", "2026-03", "web", "demo", "output", "demo@1", 500_000, Decimal("1.00")),
    ]
    assert [row.part for row in records_behind(april.lines.get()).rows()] == [1]


def test_it_notes_nothing_of_a_period_that_is_not_invoiced(acme: Tenant, price: Price) -> None:
    use("2026-03-05 12:00", price)
    close(utc("2026-04-02"))
    use("2026-03-05 12:00", price)
    assert not LateUsage.objects.exists()


def test_it_invoices_the_usage_of_a_voided_invoice_again(acme: Tenant, price: Price) -> None:
    first = use("2026-03-05 12:00", price, tokens=MILLION)
    march = finalise(close(utc("2026-04-02"))[0])
    late = use("2026-03-06 12:00", price, tokens=(2_000_000, 0, 0))
    use("2026-04-06 12:00", price, tokens=MILLION)
    april = finalise(close(utc("2026-05-02"))[0])
    assert april.total == Decimal("1.50")
    void_invoice(march.pk, reason="wrong address")
    (again,) = close(utc("2026-05-03"))
    assert stated(again) == [("usage", "2026-03", "web", "demo", "uncached", "demo@1", 1_000_000, Decimal("0.50"))]
    again = finalise(again)
    assert ids(again, 1) == [first]
    assert ids(april, 2) == [late]
    void_invoice(april.pk, reason="wrong address")
    (anew,) = close(utc("2026-05-03"))
    assert (anew.label, anew.total) == ("2026-04", Decimal("1.50"))
    assert ids(finalise(anew), 2) == [late]


def test_it_carries_an_adjustment_along_when_both_invoices_are_voided(acme: Tenant, price: Price) -> None:
    use("2026-03-05 12:00", price, tokens=MILLION)
    march = finalise(close(utc("2026-04-02"))[0])
    use("2026-03-06 12:00", price, tokens=(2_000_000, 0, 0))
    april = finalise(close(utc("2026-05-02"))[0])
    for invoice in (april, march):
        void_invoice(invoice.pk, reason="wrong")
    drafts = close(utc("2026-05-03"))
    assert [(draft.label, draft.total) for draft in drafts] == [("2026-03", Decimal("1.50"))]


@pytest.mark.django_db(transaction=True)
def test_it_loses_nothing_that_is_drained_while_its_period_is_finalised() -> None:
    make_seller()
    price = make_price()
    make_customer()
    use("2026-03-05 12:00", price, tokens=(1000, 0, 0))
    (draft,) = close(utc("2026-04-02"))

    def work(worker: int) -> None:
        if worker == 0:
            finalise(draft)
        else:
            for _ in range(10):
                use("2026-03-05 12:00", price, tokens=(1000, 0, 0))

    at_once(4, work)
    close(utc("2026-05-02"))
    late = sum(line.quantity or 0 for line in InvoiceLine.objects.filter(kind="adjustment"))
    assert sum(line.quantity or 0 for line in InvoiceLine.objects.all()) == 31_000
    assert LateUsage.objects.count() * 1000 == late


@pytest.mark.django_db(transaction=True)
def test_it_waits_with_late_rows_until_finalising_is_over() -> None:
    make_seller()
    price = make_price()
    make_customer()
    use("2026-03-05 12:00", price)
    (draft,) = close(utc("2026-04-02"))
    order = []

    def work(worker: int) -> None:
        if worker == 0:
            with transaction.atomic():
                lock_invoices("acme")
                finalise_invoice(draft.pk, now=utc("2026-04-10"), grace=timedelta())
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_sleep(1)")
                order.append("finalised")
        else:
            while not Invoice.objects.filter(status="finalised").exists() and not _is_locked():
                pass
            use("2026-03-05 12:00", price)
            order.append("written")

    at_once(2, work)
    assert order == ["finalised", "written"]
    assert LateUsage.objects.count() == 1


def _is_locked() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock'")
        return bool(cursor.fetchone()[0])
