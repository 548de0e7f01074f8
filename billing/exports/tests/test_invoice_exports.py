"""Every form in which an invoice leaves states the stored amounts, to the last digit."""

import csv
import io
import json
import re
from decimal import Decimal
from typing import Any
from zipfile import ZipFile

import pytest
from pypdf import PdfReader

from billing.exports.focus import COLUMNS as FOCUS_COLUMNS
from billing.exports.formats import FORMATS, export, file_name
from billing.exports.invoice_rows import COLUMNS
from billing.exports.pdf import compile_pages
from billing.exports.record_rows import records_csv
from billing.invoicing.content import hash_of, stated_by
from billing.invoicing.crediting import credit_invoice
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
from billing.invoicing.voiding import void_invoice
from billing.models import BillingAccount, Credit, Invoice

pytestmark = pytest.mark.django_db
D = Decimal
MANDATORY = {
    "BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart",
    "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargePeriodEnd", "ChargePeriodStart", "ContractedCost",
    "EffectiveCost", "InvoiceIssuerName", "ListCost", "PricingQuantity", "PricingUnit", "ProviderName", "PublisherName",
    "ServiceCategory", "ServiceName",
}  # fmt: skip


@pytest.fixture
def invoice() -> Invoice:
    """Everything an invoice can have: usage at two prices, an adjustment, discount, fee, credit and tax."""
    make_seller()
    price, own = make_price(), make_price(tenant="acme", output="1.5", effective_from=utc("2026-03-10"))
    tenant = make_customer(
        time_zone="Asia/Kolkata", name="Acme & Söhne #1 *AG*", tax_rate="19", discount_percent="7.5", reference="PO-77"
    )
    use("2026-02-05 12:00", price, tokens=(1_000_000, 0, 0))
    finalise(close(utc("2026-03-02"))[0])
    use("2026-02-06 12:00", price, tokens=(30_000, 0, 0))
    use("2026-03-05 12:00", price, tokens=(12_345_678, 3_000_001, 17))
    use("2026-03-12 12:00", own, tokens=(1_000_000, 0, 777_777), project="batch")
    Credit.objects.create(tenant=tenant, amount="1.23", currency="EUR", reason="=outage")
    BillingAccount.objects.update(minimum_fee="25", since=utc("2026-03-15"))
    return finalise(close(utc("2026-04-02"))[0])


def bytes_of(invoice: Invoice, form: str) -> bytes:
    return b"".join(export(invoice, form))


def rows_of(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode(), newline="")))


def pdf_text(invoice: Invoice) -> str:
    pages = PdfReader(io.BytesIO(bytes_of(invoice, "pdf"))).pages
    return "\n".join(page.extract_text() for page in pages)


def test_it_states_the_stored_amounts_in_every_form(invoice: Invoice) -> None:
    amounts = list(invoice.lines.order_by("position").values_list("amount", flat=True))
    assert sum(amounts) == invoice.total == invoice.net + invoice.tax
    assert invoice.lines.values("kind").distinct().count() == 6
    told = json.loads(bytes_of(invoice, "json"))
    assert [D(line["amount"]) for line in told["lines"]] == amounts
    assert (D(told["total"]), told["number"]) == (invoice.total, invoice.number)
    assert [D(row["amount"]) for row in rows_of(bytes_of(invoice, "csv"))] == amounts
    assert [D(row["BilledCost"]) for row in rows_of(bytes_of(invoice, "focus"))] == amounts
    assert [D(str(row[COLUMNS.index("amount")])) for row in sheet(bytes_of(invoice, "xlsx"), 2)[1:]] == amounts
    text = pdf_text(invoice)
    for amount in [*amounts, invoice.net, invoice.tax, invoice.total]:
        assert f"{amount:,.2f}".replace("-", "\u2212") in text
    for words in (
        "NORTH-000002",
        "Acme & Söhne #1 *AG*",
        "Northern Compute GmbH",
        "PO-77",
        "Page 1 of 1",
        "9,345,677",
    ):
        assert words in text


def sheet(data: bytes, number: int) -> list[list[Any]]:
    """The cells of a worksheet as they are stored: numbers as numbers, text as text."""
    with ZipFile(io.BytesIO(data)) as book:
        xml = book.read(f"xl/worksheets/sheet{number}.xml").decode()
    assert "<f>" not in xml
    found = []
    for row in re.findall(r"<row .*?</row>", xml):
        cells: list[Any] = [None] * len(COLUMNS)
        for column, attributes, inner in re.findall(r'<c r="([A-Z]+)\d+"(.*?)>(.*?)</c>', row):
            place = sum((ord(letter) - 64) * 26**index for index, letter in enumerate(reversed(column))) - 1
            value = re.sub("<.*?>", "", inner)
            cells[place] = value if 't="inlineStr"' in attributes else float(value)
        found.append(cells)
    return found


def test_it_says_the_same_in_csv_and_xlsx(invoice: Invoice) -> None:
    cells = sheet(bytes_of(invoice, "xlsx"), 2)
    rows = rows_of(bytes_of(invoice, "csv"))
    assert tuple(cells[0]) == tuple(rows[0]) == COLUMNS
    assert rows[0]["period_start"] == "2026-03-01T00:00:00+05:30"
    for row, line in zip(cells[1:], rows, strict=True):
        for name, cell in zip(COLUMNS, row, strict=True):
            text = line[name].removeprefix("'") if name == "description" else line[name]
            assert ("" if cell is None else cell) == (
                float(text) if isinstance(cell, float) else text.replace("&", "&amp;")
            )


def test_it_adds_up_to_the_payable_amount_in_focus(invoice: Invoice) -> None:
    rows = rows_of(bytes_of(invoice, "focus"))
    assert set(rows[0]) >= MANDATORY
    assert tuple(rows[0]) == FOCUS_COLUMNS
    assert sum(D(row["BilledCost"]) for row in rows if row["InvoiceId"] == invoice.number) == invoice.total
    assert {row["ChargeCategory"] for row in rows} == {"Usage", "Adjustment", "Credit", "Tax"}
    for row in rows:
        assert row["BillingPeriodStart"] == "2026-02-28T18:30:00Z"
        assert row["EffectiveCost"] == row["BilledCost"]
        if row["ChargeCategory"] == "Usage":
            quantity = D(row["PricingQuantity"])
            assert quantity * 1_000_000 == D(row["ConsumedQuantity"])
            assert quantity * D(row["ContractedUnitPrice"]) == D(row["ContractedCost"])
            assert quantity * D(row["ListUnitPrice"]) == D(row["ListCost"])
            assert abs(D(row["ContractedCost"]) - D(row["BilledCost"])) <= D("0.005")
            assert json.loads(row["Tags"])["headrace/project"] == row["SubAccountId"]
            assert json.loads(row["SkuPriceDetails"]) == {"x_Model": row["ResourceId"], "x_TokenClass": row["SkuMeter"]}
        else:
            assert row["SkuId"] == row["ConsumedQuantity"] == row["SkuPriceDetails"] == ""
    (own,) = [row for row in rows if row["SkuPriceId"] == "demo@2/output"]
    assert (own["ContractedUnitPrice"], own["ListUnitPrice"], own["SubAccountId"]) == ("1.5", "2", "batch")
    (late,) = [row for row in rows if row["ChargeClass"] == "Correction"]
    assert (late["ChargePeriodStart"], late["ChargePeriodEnd"]) == ("2026-01-31T18:30:00Z", "2026-02-28T18:30:00Z")


def test_it_exports_a_credit_note(invoice: Invoice) -> None:
    note = credit_invoice(invoice.pk, reason="wrong price", net=D("10.00"))
    assert (note.number, note.net, note.tax, note.total) == ("NORTH-000003", D("-10.00"), D("-1.90"), D("-11.90"))
    rows = rows_of(bytes_of(note, "focus"))
    assert [(row["ChargeCategory"], row["ChargeClass"], row["BilledCost"]) for row in rows] == [
        ("Credit", "Correction", "-10.00"),
        ("Tax", "Correction", "-1.90"),
    ]
    text = pdf_text(note)
    for words in ("Credit note NORTH-000003", "NORTH-000002", "\u221211.90", "wrong price"):
        assert words in text
    rest = credit_invoice(invoice.pk, reason="the rest")
    assert note.total + rest.total == -invoice.total
    assert note.tax + rest.tax == -invoice.tax


def test_it_says_on_the_page_that_a_draft_is_none_and_a_voided_one_void(invoice: Invoice) -> None:
    use("2026-04-12 12:00", make_price("other"))
    (draft,) = close(utc("2026-05-02"))
    assert "DRAFT, NOT AN INVOICE" in pdf_text(draft)
    assert file_name(draft, "focus") == "draft-acme-2026-04.focus.csv"
    assert "VOID" not in pdf_text(invoice)
    assert "VOID" in pdf_text(void_invoice(invoice.pk, reason="wrong"))


def test_it_is_the_same_file_each_time(invoice: Invoice) -> None:
    before = {form: bytes_of(invoice, form) for form in FORMATS}
    BillingAccount.objects.update(name="Renamed", tax_rate="7")
    invoice = Invoice.objects.get(pk=invoice.pk)
    assert {form: bytes_of(invoice, form) for form in FORMATS} == before
    assert hash_of(stated_by(invoice)) == invoice.content_hash


def test_it_leaves_no_formula_in_any_cell(invoice: Invoice) -> None:
    hostile = ["=1+1", "+1", "-2+3", "@SUM(A1)", "\tx", "\r=1", "  =1", "\uff1d1"]
    content = stated_by(invoice)
    for place, text in enumerate(hostile):
        line = content["lines"][place % len(content["lines"])]
        line["description"] = line["project"] = text
        content["customer"]["name"] = text
        for form in ("csv", "focus"):
            for row in rows_of(b"".join(FORMATS[form].write(content, "finalised"))):
                for name, cell in row.items():
                    is_number = re.fullmatch(r"-?[0-9.]*", cell)
                    assert is_number or not cell.lstrip(" ").startswith(tuple("=+-@\t\r\uff1d")), (name, cell)
        sheet(b"".join(FORMATS["xlsx"].write(content, "finalised")), 2)
        compile_pages(content, status="finalised", format="pdf")


def test_it_sets_many_pages_with_their_numbers(invoice: Invoice) -> None:
    content = stated_by(invoice)
    content["lines"] = [content["lines"][0] | {"project": f"project-{n // 9}", "position": n} for n in range(1, 400)]
    pages = PdfReader(io.BytesIO(compile_pages(content, status="finalised", format="pdf"))).pages
    count = len(pages)
    assert count > 6
    for number, page in enumerate(pages, start=1):
        text = page.extract_text()
        assert f"Page {number} of {count}" in text
        assert "Speicherstraße 7" in text
    assert "Invoice NORTH-000002" in pages[1].extract_text()
    assert "Model and tokens" in pages[1].extract_text()


def test_it_writes_the_records_behind_an_invoice_as_they_are_read(invoice: Invoice) -> None:
    chunks = list(records_csv(invoice.lines.select_related("invoice").order_by("position")))
    rows = rows_of(b"".join(chunks))
    by_line = {line.position: line for line in invoice.lines.all() if line.has_records}
    assert {int(row["line"]) for row in rows} == set(by_line)
    for position, line in by_line.items():
        mine = [row for row in rows if int(row["line"]) == position]
        prompt, cached = (sum(int(row[name]) for row in mine) for name in ("input_tokens", "cached_input_tokens"))
        output = sum(int(row["output_tokens"]) for row in mine)
        assert line.quantity == {"uncached": prompt - cached, "cached": cached, "output": output}[line.token_class]
    assert json.loads(rows[0]["labels"]) == {"team": "search"}
    assert rows[0]["admitted_at"].endswith("Z")


def test_it_streams_a_large_one_in_pieces() -> None:
    make_seller()
    price = make_price()
    make_customer()
    write(*(event_of(utc("2026-03-05 12:00"), price, tokens=(10, 0, 0)) for _ in range(1201)))
    invoice = finalise(close(utc("2026-04-02"))[0])
    pieces = list(records_csv(invoice.lines.all()))
    assert len(pieces) == 3
    assert len(rows_of(b"".join(pieces))) == 1201
