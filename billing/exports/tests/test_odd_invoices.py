"""Invoices as they come: currencies of any minor unit, all terms at once, names that were made to break a form."""

import csv
import io
import json
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import Any

import pytest
import rest_framework
from pypdf import PdfReader
from pytest_django import Settings

from billing.exports.cells import text_cell
from billing.exports.formats import FORMATS, export
from billing.exports.pdf import unprintable
from billing.exports.record_rows import records_csv
from billing.invoicing.content import stated_by
from billing.invoicing.crediting import credit_invoice
from billing.invoicing.errors import CannotFinalise
from billing.invoicing.finalising import boxes_in
from billing.invoicing.tests.making import close, finalise, make_customer, make_price, make_seller, stated, use, utc
from billing.invoicing.voiding import void_invoice
from billing.models import Credit, Invoice, InvoiceLine
from tenants.models import Tenant

pytestmark = pytest.mark.django_db
D, BEGIN = Decimal, utc("2026-03-01")
# (input, of them cached, output) tokens
USED = [(1_234_567, 234_567, 89_101), (333_333, 0, 1), (77, 77, 7_777_777)]
PRICES = (D("1234.567891"), D("12.345678"), D("4321.000001"))


def rows_of(invoice: Invoice, form: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(b"".join(export(invoice, form)).decode(), newline="")))


def total_told(invoice: Invoice) -> set[Decimal]:
    """The sum of the lines of every form that has numbers, and the stated total: one amount if all agree."""
    told = json.loads(b"".join(export(invoice, "json")))
    focus = [row for row in rows_of(invoice, "focus") if row["InvoiceId"] == (invoice.number or "")]
    return {
        invoice.total,
        D(told["total"]),
        sum((D(line["amount"]) for line in told["lines"]), D(0)),
        sum((D(row["amount"]) for row in rows_of(invoice, "csv")), D(0)),
        sum((D(row["BilledCost"]) for row in focus), D(0)),
    }


@pytest.mark.parametrize(("currency", "unit"), [("JPY", "1"), ("USD", "0.01"), ("KWD", "0.001")])
@pytest.mark.parametrize("fee", ["0", "90000"])
def test_it_is_what_an_independent_sum_says_with_all_terms_at_once(currency: str, unit: str, fee: str) -> None:
    def cash(amount: Decimal) -> Decimal:
        return amount.quantize(D(unit), ROUND_HALF_EVEN)

    make_seller()
    rates = dict(zip(("input", "cached", "output"), map(str, PRICES), strict=True))
    price = make_price(currency=currency, **rates)
    tenant = make_customer(currency=currency, tax_rate="8.1", discount_percent="7.5", minimum_fee=fee, created_at=BEGIN)
    for tokens in USED:
        use("2026-03-05 12:00", price, tokens=tokens, currency=currency)
    Credit.objects.create(tenant=tenant, amount="1234", currency=currency, reason="outage")
    invoice = finalise(close(utc("2026-04-02"))[0])

    classes = [(total - cached, cached, output) for total, cached, output in USED]
    counts = [sum(column) for column in zip(*classes, strict=True)]
    exact = [count * rate / 1_000_000 for count, rate in zip(counts, PRICES, strict=True)]
    lines = [cash(amount) for amount in exact]
    discount_exact = -sum(exact) * D("0.075")
    exact.append(discount_exact)
    lines.append(cash(discount_exact))
    if D(fee):
        exact.append(D(fee) - sum(exact))
        lines.append(D(fee) - sum(lines))
    exact.append(D(-1234))
    lines.append(D(-1234))
    net, tax = sum(lines), cash(sum(exact) * D("0.081"))
    assert (invoice.net, invoice.tax, invoice.total) == (net, tax, net + tax)
    assert total_told(invoice) == {net + tax}
    assert [row["amount"] for row in rows_of(invoice, "csv")] == [str(cash(amount)) for amount in [*lines, tax]]

    parts = [
        credit_invoice(invoice.pk, reason="half", net=cash(D(net) / 3)),
        credit_invoice(invoice.pk, reason="the rest"),
    ]
    assert sum(note.total for note in parts) == -invoice.total
    assert sum(note.tax for note in parts) == -invoice.tax
    for note in parts:
        assert total_told(note) == {note.total}
        void_invoice(note.pk, reason="by mistake")
    before = stated(invoice)
    void_invoice(invoice.pk, reason="by mistake")
    again = finalise(close(utc("2026-04-03"))[0])
    assert (stated(again), again.total) == (before, invoice.total)
    assert again.number not in {invoice.number, None}
    assert total_told(again) == {invoice.total}


def test_it_has_an_invoice_for_each_currency_and_never_adds_them() -> None:
    make_seller()
    make_customer(minimum_fee="10", tax_rate="19", created_at=BEGIN)
    use("2026-03-05 12:00", make_price(), tokens=(1_000_000, 0, 0))
    use("2026-03-06 12:00", make_price("old", currency="JPY", input="155"), tokens=(1_000_000, 0, 0), currency="JPY")
    invoices = [finalise(draft) for draft in close(utc("2026-04-02"))]
    assert [(one.currency, one.total) for one in invoices] == [("EUR", D("11.90")), ("JPY", D(184))]
    for one in invoices:
        assert total_told(one) == {one.total}
        assert {row["BillingCurrency"] for row in rows_of(one, "focus")} == {one.currency}


def test_it_has_nothing_to_say_of_a_month_without_use_but_its_fee() -> None:
    make_seller()
    tenant = make_customer(minimum_fee="10", tax_rate="19", created_at=utc("2026-03-15"))
    (draft,) = close(utc("2026-04-02"))
    invoice = finalise(draft)
    assert (invoice.net, total_told(invoice)) == (D(10), {D("11.90")})
    assert [line.kind for line in invoice.lines.order_by("position")] == ["minimum_fee", "tax"]
    other = make_customer("globex")
    use("2026-03-05 12:00", make_price("free", input="0", cached="0", output="0"), tenant="globex")
    (free,) = close(utc("2026-04-02"), tenants=["globex"])
    assert total_told(finalise(free)) == {D(0)}
    assert Invoice.objects.of(tenant).count() == Invoice.objects.of(other).count() == 1


def test_it_drafts_and_exports_what_nobody_invoices_yet_and_says_why_it_stays_a_draft() -> None:
    Tenant.objects.create(slug="acme", name="Acme", currency="EUR", created_at=utc("2026-01-01"))
    use("2026-03-05 12:00", make_price(), tokens=(1_000_000, 0, 0))
    (draft,) = close(utc("2026-04-02"))
    for form in FORMATS:
        assert b"".join(export(draft, form))
    assert total_told(draft) == {D("0.50")}
    with pytest.raises(CannotFinalise, match="has no legal entity"):
        finalise(draft)


HOSTILE = {
    "formula": '=HYPERLINK("http://x","a")',
    "quotes": "a\"b'c,d;e|f",
    "lines": "one\r\ntwo\nthree\ttab",
    "long": "m" * 200,
    "long words": "wide model " * 18,
    "right to left": "\u05e9\u05dc\u05d5\u05dd \u202eevil\u202c \u0645\u0631\u062d\u0628\u0627",
    "emoji": "\U0001f680\U0001f469\u200d\U0001f4bb model",
    "markup": "#panic() $x$ *b* _i_ `c` @ref <label> \\u{41} // c",
    "controls": "bell\x07 escape\x1b[31m \ufffe",
    "wide": "\u6a21\u578b \uff1d1+1",
}


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE.keys())
def test_it_writes_any_name_in_every_form(name: str) -> None:
    make_seller(name=name, address=name)
    make_customer(name=name[:200], address=name, tax_rate="19")
    price = make_price(name)
    use("2026-03-05 12:00", price, tokens=(1_000_000, 1, 1), project=name, target=name, labels={"user": name})
    invoice = finalise(close(utc("2026-04-02"))[0])
    assert total_told(invoice) == {invoice.total}
    for form in ("csv", "focus"):
        for row in rows_of(invoice, form):
            for cell in row.values():
                assert not cell.lstrip(" ").startswith(("=", "@", "\t", "\r", "\uff1d"))
    (line, *_) = rows_of(invoice, "csv")
    assert line["model"] == text_cell(name)  # the same for all that no separator is in
    records = b"".join(records_csv(InvoiceLine.objects.filter(invoice=invoice))).decode()
    (record, *_) = csv.DictReader(io.StringIO(records, newline=""))
    assert record["project"] == text_cell(name)
    assert b"".join(export(invoice, "xlsx")).startswith(b"PK")
    pages = PdfReader(io.BytesIO(b"".join(export(invoice, "pdf")))).pages
    assert f"{invoice.total:,.2f}" in "".join(page.extract_text() for page in pages)


def test_it_breaks_a_name_that_is_wider_than_its_column() -> None:
    """Nothing is set over what stands beside it, or off the page."""
    make_seller(name="Sel" * 40)
    make_customer(name="Cus" * 40)
    use("2026-03-05 12:00", make_price("mod" * 60), tokens=(1_000_000, 1, 1), project="pro" * 20)
    invoice = finalise(close(utc("2026-04-02"))[0])
    (page,) = PdfReader(io.BytesIO(b"".join(export(invoice, "pdf")))).pages
    ends: list[float] = []

    def note(text: str, _: object, matrix: list[float], __: object, size: float) -> None:
        ends.append(matrix[4] + 0.3 * size * len(text.strip()))

    page.extract_text(visitor_text=note)
    assert max(ends) < page.mediabox.width


def test_it_takes_an_operators_fonts_for_what_its_own_do_not_know(settings: Settings) -> None:
    """A picture of a font that comes with a library stands for a script that Typst's fonts lack."""
    folder = Path(rest_framework.__file__).parent / "static/rest_framework/fonts"
    make_seller()
    make_customer(name="\uf0f4 Kaffee")
    use("2026-03-05 12:00", make_price("chat"), tokens=(1_000_000, 1, 1))
    invoice = finalise(close(utc("2026-04-02"))[0])

    def has_the_font() -> bool:
        page: Any = PdfReader(io.BytesIO(b"".join(export(invoice, "pdf")))).pages[0]
        return "FontAwesome" in str([font.get_object()["/BaseFont"] for font in page["/Resources"]["/Font"].values()])

    assert not has_the_font()
    settings.INVOICE_FONTS = str(folder)
    assert has_the_font()


@pytest.mark.parametrize(
    ("name", "boxed"),
    [("Stra\u00dfe \u03a9 \u0416 \u05e9 \u0639 \u0905", []), ("\u6a21\u578b \u0e01", ["\u6a21", "\u578b", "\u0e01"])],
)
def test_whoever_finalises_is_told_of_characters_that_print_as_boxes(name: str, boxed: list[str]) -> None:
    make_seller()
    make_customer(name=name)
    use("2026-03-05 12:00", make_price("chat"), tokens=(1_000_000, 1, 1))
    invoice = finalise(close(utc("2026-04-02"))[0])
    assert unprintable(stated_by(invoice)) == boxed
    told = boxes_in(invoice)
    assert told == "" if not boxed else f"boxes for {' '.join(boxed)}:" in told
