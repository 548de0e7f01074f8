"""What is finalised stays as it is: the database refuses everything but the void, to every role."""

import pytest
from django.db import DatabaseError, IntegrityError, transaction

from billing.invoicing.crediting import credit_invoice
from billing.invoicing.tests.making import close, finalise, use, utc
from billing.models import Credit, Invoice, LegalEntity, Price
from tenants.models import Tenant
from tenants.tests.cast import sql

pytestmark = pytest.mark.django_db


@pytest.fixture
def invoice(acme: Tenant, price: Price) -> Invoice:
    Credit.objects.create(tenant=acme, amount="0.10", currency="EUR", reason="outage")
    use("2026-03-05 12:00", price, tokens=(1_000_000, 0, 0))
    return finalise(close(utc("2026-04-02"))[0])


FORBIDDEN = [
    "UPDATE billing_invoice SET total = 0, net = 0",
    "UPDATE billing_invoice SET content = '{}'",
    "UPDATE billing_invoice SET content_hash = repeat('0', 64)",
    "UPDATE billing_invoice SET number = 'NORTH-000099'",
    "UPDATE billing_invoice SET sequence = 99",
    "UPDATE billing_invoice SET currency = 'USD'",
    "UPDATE billing_invoice SET period_end = now()",
    "UPDATE billing_invoice SET status = 'draft', number = NULL, sequence = NULL, finalised_at = NULL",
    "UPDATE billing_invoice SET status = 'voided', voided_at = now(), total = 0, net = 0",
    "UPDATE billing_invoice SET drafted_at = now()",
    "DELETE FROM billing_invoice",
    "UPDATE billing_invoiceline SET amount = 0",
    "UPDATE billing_invoiceline SET description = ''",
    "DELETE FROM billing_invoiceline",
    "INSERT INTO billing_invoiceline (invoice_id, position, kind, period, description, project, model, token_class,"
    " price, exact, amount) SELECT id, 99, 'tax', period, '', '', '', '', '', 1, 1 FROM billing_invoice",
    "UPDATE billing_legalentity SET next_number = 1",
    "UPDATE billing_legalentity SET next_number = 4",
    "UPDATE billing_credit SET amount = 5",
    "DELETE FROM billing_credit",
]


@pytest.mark.parametrize("role", ["headrace_system", "headrace_owner"])
@pytest.mark.parametrize("statement", FORBIDDEN, ids=lambda text: text[:60])
def test_it_refuses_every_change(invoice: Invoice, statement: str, role: str) -> None:
    sql(f"SET LOCAL ROLE {role}")
    with pytest.raises(IntegrityError), transaction.atomic():
        sql(statement)


def test_it_lets_the_screens_role_write_nothing_at_all(invoice: Invoice) -> None:
    sql("SET LOCAL ROLE headrace_app")
    sql("SELECT set_config('headrace.tenant', 'acme', true)")
    assert sql("SELECT number FROM billing_invoice") == [("NORTH-000001",)]
    assert len(sql("SELECT 1 FROM billing_invoiceline")) == 2
    for table in ("invoice", "invoiceline", "credit", "billingaccount", "lateusage", "tenantzone"):
        for statement in (f"DELETE FROM billing_{table}", f"TRUNCATE billing_{table} CASCADE"):
            with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
                sql(statement)
    with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
        sql("SELECT * FROM billing_legalentity")


def test_it_lets_a_finalised_one_become_voided_and_that_be_the_end(invoice: Invoice) -> None:
    sql("UPDATE billing_invoice SET status = 'voided', voided_at = now(), void_reason = 'wrong'")
    for statement in (
        "UPDATE billing_invoice SET status = 'finalised', voided_at = NULL",
        "UPDATE billing_invoice SET void_reason = 'another'",
        "DELETE FROM billing_invoice",
    ):
        with pytest.raises(IntegrityError, match="is voided"), transaction.atomic():
            sql(statement)


def test_it_makes_no_invoice_but_through_a_draft(invoice: Invoice) -> None:
    columns = (
        "tenant_id, kind, currency, period, period_start, period_end, time_zone, legal_entity_id, net, tax, total,"
        " content, content_hash, drafted_at, finalised_at, void_reason"
    )
    with pytest.raises(IntegrityError, match="begins as a draft"), transaction.atomic():
        sql(
            f"INSERT INTO billing_invoice (id, status, sequence, number, {columns})"
            f" SELECT gen_random_uuid(), 'finalised', 7, 'X-7', {columns} FROM billing_invoice"
        )


def test_it_takes_no_number_but_from_the_series(invoice: Invoice, price: Price) -> None:
    use("2026-04-05 12:00", price)
    close(utc("2026-05-02"))
    sql(
        "UPDATE billing_invoice SET status = 'finalised', sequence = 7, number = 'X-7', finalised_at = now(),"
        " legal_entity_id = 'north', content = '{}', content_hash = repeat('0', 64) WHERE status = 'draft'"
    )
    with pytest.raises(IntegrityError, match="not taken from the series"):
        sql("SET CONSTRAINTS ALL IMMEDIATE")


def test_it_holds_one_invoice_a_period(invoice: Invoice) -> None:
    fields = ("tenant", "currency", "period", "period_start", "period_end", "time_zone")
    copy = {name: getattr(invoice, name) for name in fields}
    with pytest.raises(IntegrityError, match="billing_invoice_once"), transaction.atomic():
        Invoice.objects.create(**copy)


def test_it_keeps_what_a_credit_note_stands_on(invoice: Invoice) -> None:
    note = credit_invoice(invoice.pk, reason="outage")
    assert note.total == -invoice.total
    with pytest.raises(IntegrityError), transaction.atomic():
        LegalEntity.objects.all().delete()
