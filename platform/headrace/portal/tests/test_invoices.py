"""Invoices in the portal: what stands on the page is what was stored and what every download says."""

import csv
import io
import json
import re
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext

from billing.invoicing.crediting import credit_invoice
from billing.invoicing.tests.making import close, finalise, make_price, make_seller, use
from billing.invoicing.voiding import void_invoice
from billing.models import BillingAccount, Credit, DroppedMonth, Invoice
from headrace.portal.documents import running
from headrace.portal.tests.cast import Cast, browser

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


@pytest.fixture
def seller(cast: Cast) -> None:
    Invoice.objects.all().delete()  # the cast's own is of no use
    account = BillingAccount(
        tenant=cast.acme.tenant, legal_entity=make_seller(), tax_rate=19, since="2020-01-01T00:00Z"
    )
    account.save()


def issued(cast: Cast) -> Invoice:
    """April 2026 of acme in Berlin: two prices, three kinds of tokens, an unlucky rounding."""
    key = cast.acme.key.pk
    for day, tokens in ((1, (1_234_567, 400_001, 50_003)), (15, (7, 3, 1)), (30, (1_000, 0, 999_999))):
        use(f"2026-04-{day:02}T08:00", make_price(f"m{day}", output="2.345678"), tokens=tokens, key=key)
    [draft] = close(NOW)
    return finalise(draft, NOW)


def fetched(client: Client, path: str) -> bytes:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return b"".join(answer) if answer.streaming else answer.content


def amounts(page: str) -> list[str]:
    """The amount of each line of the table of lines."""
    return [found.replace(",", "") for found in re.findall(r'title="Exactly [^"]*">([\d.,]+) EUR', page)]


@pytest.mark.usefixtures("seller")
def test_it_states_on_the_page_what_is_stored_and_what_every_download_says(cast: Cast) -> None:
    invoice, fay = issued(cast), browser("fay")
    path = f"/t/acme/invoices/{invoice.pk}/"
    page = fetched(fay, path).decode()
    stored = list(invoice.lines.order_by("position"))
    assert len(stored) == 3 + 3 + 2 + 1  # kinds of tokens of three models, and tax
    assert [Decimal(each) for each in amounts(page)] == [line.amount for line in stored]
    assert sum(line.amount for line in stored) == invoice.total
    assert f"{invoice.total:,.2f} EUR" in page
    said = json.loads(fetched(fay, f"{path}as/json/"))
    assert (Decimal(said["total"]), Decimal(said["tax"])) == (invoice.total, invoice.tax)
    rows = list(csv.DictReader(io.StringIO(fetched(fay, f"{path}as/csv/").decode())))
    assert [row["amount"] for row in rows] == amounts(page)
    focus = list(csv.DictReader(io.StringIO(fetched(fay, f"{path}as/focus/").decode())))
    assert sum(Decimal(row["BilledCost"]) for row in focus) == invoice.total
    assert fetched(fay, f"{path}as/xlsx/")[:2] == b"PK"
    pdf = fay.get(f"{path}as/pdf/")
    assert (pdf.headers["Content-Type"], b"".join(pdf)[:5]) == ("application/pdf", b"%PDF-")
    assert pdf.headers["Content-Disposition"] == f'attachment; filename="{invoice.number}.pdf"'
    assert fay.get(f"{path}as/exe/").status_code == 404


@pytest.mark.usefixtures("seller")
def test_it_opens_the_records_behind_a_line_and_says_when_they_were_dropped(cast: Cast) -> None:
    invoice = issued(cast)
    line = invoice.lines.get(model="m1", token_class="output")
    path = f"/t/acme/invoices/{invoice.pk}/lines/{line.position}/"
    records = list(csv.DictReader(io.StringIO(fetched(browser("fay"), f"{path}records.csv").decode("utf-8-sig"))))
    assert sum(int(row["output_tokens"]) for row in records) == line.quantity
    page = fetched(browser("fay"), path).decode()
    assert f"/t/acme/requests/{records[0]['request_id']}/" in page
    assert "acme-key" in fetched(browser("alice"), path).decode()
    assert "acme-key" not in page  # finance sees no keys
    assert cast.acme.key.pk not in page
    DroppedMonth.objects.create(month="2026-04-01", dropped_at=datetime(2026, 7, 3, tzinfo=UTC), records=3)
    assert "April 2026 were dropped on 3 Jul 2026" in fetched(browser("fay"), path).decode()
    tax = invoice.lines.get(kind="tax")
    assert browser("fay").get(f"/t/acme/invoices/{invoice.pk}/lines/{tax.position}/").status_code == 404


@pytest.mark.usefixtures("seller")
def test_it_marks_drafts_and_says_what_they_wait_for(cast: Cast) -> None:
    use("2026-04-02T08:00", make_price(), tokens=(1000, 0, 5))
    use("2026-04-03T08:00", None, tokens=(1000, 0, 5), model="odd")
    BillingAccount.objects.update(legal_entity=None)
    [draft] = close(datetime(2026, 5, 1, tzinfo=UTC))
    page = fetched(browser("fay"), f"/t/acme/invoices/{draft.pk}/").decode()
    assert "Draft for April 2026" in page
    assert "1,005 tokens of April 2026 have no price yet" in page
    assert "Nobody is named yet who invoices you" in page
    said = json.loads(fetched(browser("fay"), f"/t/acme/invoices/{draft.pk}/as/json/"))
    assert (said["status"], said["number"], Decimal(said["total"])) == ("draft", None, draft.total)


@pytest.mark.usefixtures("seller")
def test_it_shows_the_month_that_runs_as_what_it_is(cast: Cast) -> None:
    fay = browser("fay")
    assert "No invoice yet" in fetched(fay, "/t/acme/invoices/").decode()
    assert "Nothing to state yet" in fetched(fay, "/t/acme/invoices/current/").decode()
    price = make_price(input="100", cached="100", output="100")
    use(datetime.now(UTC), price, tokens=(1_000_000, 0, 500_000))
    for path in ("/t/acme/invoices/", "/t/acme/invoices/current/"):
        page = fetched(fay, path).decode()
        assert "178.50 EUR" in page
        assert "so far" in page
    said = json.loads(fetched(fay, "/t/acme/invoices/current/as/json/"))
    assert (said["status"], said["number"], said["total"]) == ("draft", None, "178.50")
    assert Invoice.objects.count() == 0


@pytest.mark.usefixtures("seller")
def test_it_shows_credit_notes_credits_and_what_was_voided(cast: Cast) -> None:
    invoice, fay = issued(cast), browser("fay")
    note = credit_invoice(invoice.pk, reason="an outage", net=Decimal("0.50"), now=NOW)
    Credit.objects.create(tenant=cast.acme.tenant, amount=25, currency="EUR", reason="goodwill")
    page = fetched(fay, "/t/acme/invoices/").decode()
    assert note.number is not None
    assert note.number in page
    assert "\u22120.60 EUR" in page
    assert "25.00 EUR left of 25.00 EUR" in page
    assert f"/t/acme/invoices/{note.pk}/" in fetched(fay, f"/t/acme/invoices/{invoice.pk}/").decode()
    shown = fetched(fay, f"/t/acme/invoices/{note.pk}/").decode()
    assert f"/t/acme/invoices/{invoice.pk}/" in shown
    void_invoice(note.pk, reason="a mistake", now=NOW)
    assert "Voided on 1 Jun 2026: a mistake" in fetched(fay, f"/t/acme/invoices/{note.pk}/").decode()


@pytest.mark.usefixtures("seller")
def test_it_asks_the_database_as_often_however_many_there_are(cast: Cast) -> None:
    invoice, fay = issued(cast), browser("fay")

    def questions(path: str) -> int:
        with CaptureQueriesContext(connections["app"]) as queries:
            fetched(fay, path)
        return len(queries)

    few = questions("/t/acme/invoices/")
    for number in range(5):
        Credit.objects.create(tenant=cast.acme.tenant, amount=number + 1, currency="EUR", reason="goodwill")
        credit_invoice(invoice.pk, reason="an outage", net=Decimal("0.01"), now=NOW)
    assert questions("/t/acme/invoices/") == few <= 20
    assert questions(f"/t/acme/invoices/{invoice.pk}/") <= 10


@pytest.mark.parametrize("total", ["150 JPY", "150.000 KWD", "150.00 USD"])
def test_it_rounds_to_each_currencys_minor_unit(cast: Cast, total: str) -> None:
    tenant, currency = cast.globex.tenant, total.split()[1]
    Invoice.objects.of(tenant).delete()  # with any its currency is fixed
    tenant.currency = currency
    tenant.save()
    make = make_price(f"in-{currency}", input="100", cached="100", output="100", currency=currency)
    use(datetime.now(UTC), make, tokens=(1_000_000, 0, 500_000), tenant="globex", currency=currency)
    assert running(tenant, datetime.now(UTC)).content["total"] == total.split()[0]
    assert total in fetched(browser("carol"), "/t/globex/invoices/").decode()
