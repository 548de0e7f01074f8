"""Invoices in the operators' admin: opened, exported, and never changed without being asked first."""

from decimal import Decimal

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from billing.exports.formats import FORMATS
from billing.invoicing.tests.making import (
    close,
    event_of,
    finalise,
    make_customer,
    make_price,
    make_seller,
    use,
    utc,
    write,
)
from billing.models import Credit, DroppedMonth, Invoice, LegalEntity
from tenants.models import AuditEntry, Tenant

pytestmark = pytest.mark.django_db


@pytest.fixture
def draft() -> Invoice:
    make_seller()
    make_customer(tax_rate="19")
    use("2026-03-05 12:00", make_price(), tokens=(1_000_000, 400_000, 50_000))
    (draft,) = close(utc("2026-04-02"))
    return draft


def page(invoice: Invoice, name: str = "change") -> str:
    return reverse("admin:billing_invoice_change", args=[invoice.pk]).removesuffix("change/") + f"{name}/"


def test_it_shows_the_lines_and_opens_the_records_behind_them(alice: Client, draft: Invoice) -> None:
    text = alice.get(page(draft)).content.decode()
    for words in ("demo, cached input tokens", "600,000", "0.44", "0.08", "0.52"):
        assert words in text
    link = reverse("admin:billing_invoice_records", args=[draft.pk, 2])
    assert link in text
    records = alice.get(link).content.decode()
    assert "0.440000000000" in records
    assert "Retention" not in records
    csv = alice.get(link, {"format": "csv"})
    assert csv.headers["Content-Disposition"] == 'attachment; filename="draft-acme-2026-03-line-2.csv"'
    assert csv.content.count(b"\r\n") == 2
    DroppedMonth.objects.create(month="2026-03-01", dropped_at=utc("2027-04-01"), records=1)
    assert "Retention has dropped the records of 2026-03 on 2027-04-01" in alice.get(link).content.decode()
    assert alice.get(reverse("admin:billing_invoice_records", args=[draft.pk, 9])).status_code == 404


@pytest.mark.parametrize("form", FORMATS)
def test_it_exports_every_form(alice: Client, draft: Invoice, form: str) -> None:
    answer = alice.get(page(finalise(draft), form))
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == FORMATS[form].content_type
    assert f'filename="NORTH-000001.{FORMATS[form].extension}"' in answer.headers["Content-Disposition"]


def test_it_finalises_credits_and_voids_when_asked_twice(alice: Client, draft: Invoice) -> None:
    for name in ("finalise", "credit", "void"):
        assert alice.get(page(draft, name)).status_code == 200
    assert Invoice.objects.get().is_draft  # asking is not doing
    alice.post(page(draft, "finalise"), {"_form_submitted": "1"})
    assert Invoice.objects.get(pk=draft.pk).number == "NORTH-000001"
    alice.post(page(draft, "credit"), {"_form_submitted": "1", "reason": "outage", "net": "0.10"})
    note = Invoice.objects.get(kind="credit_note")
    assert (note.number, note.total) == ("NORTH-000002", Decimal("-0.12"))
    alice.post(page(draft, "void"), {"_form_submitted": "1", "reason": "wrong"}, follow=True)
    assert Invoice.objects.get(pk=draft.pk).is_finalised  # the note stands on it
    for invoice in (note, draft):
        alice.post(page(invoice, "void"), {"_form_submitted": "1", "reason": ""})
        alice.post(page(invoice, "void"), {"_form_submitted": "1", "reason": "wrong"})
    assert set(Invoice.objects.values_list("status", flat=True)) == {"voided"}
    entries = AuditEntry.objects.filter(subject__startswith="billing_invoice ", action="changed")
    assert {(entry.who, entry.origin) for entry in entries} == {("alice-the-operator", "192.0.2.7")}


def test_it_says_what_a_draft_waits_for(alice: Client, draft: Invoice) -> None:
    write(event_of(utc("2026-03-05 12:00")))
    alice.post(page(draft, "finalise"), {"_form_submitted": "1"})
    assert "1,050 tokens of 2026-03 have no price" in alice.get(page(draft)).content.decode()
    assert Invoice.objects.get().is_draft


def test_it_opens_every_list_form_and_page(alice: Client, draft: Invoice) -> None:
    Credit.objects.create(tenant=Tenant.objects.get(), amount="5", currency="EUR", reason="outage")
    for table in ("invoice", "legalentity", "billingaccount", "credit"):
        assert alice.get(reverse(f"admin:billing_{table}_changelist")).status_code == 200
    for table, pk in (("legalentity", "north"), ("billingaccount", "acme"), ("credit", Credit.objects.get().pk)):
        assert alice.get(reverse(f"admin:billing_{table}_change", args=[pk])).status_code == 200
        assert alice.get(reverse(f"admin:billing_{table}_add")).status_code == 200
    form = {"slug": "south", "name": "South", "invoice_prefix": "S-", "next_number": "7"}
    alice.post(reverse("admin:billing_legalentity_add"), form)
    assert LegalEntity.objects.get(pk="south").next_number == 7


def test_it_lets_nobody_issue_or_open_records_without_the_permission(draft: Invoice) -> None:
    bob = User.objects.create(username="bob", is_staff=True)
    bob.user_permissions.set(Permission.objects.filter(codename="view_invoice"))
    client = Client()
    client.force_login(bob)
    assert client.get(page(draft)).status_code == 200
    assert client.get(page(draft, "pdf")).status_code == 200
    assert client.post(page(draft, "finalise"), {"_form_submitted": "1"}).status_code == 403
    assert (
        "0.440000000000"
        not in client.get(reverse("admin:billing_invoice_records", args=[draft.pk, 1])).content.decode()
    )
    assert Invoice.objects.get().is_draft
