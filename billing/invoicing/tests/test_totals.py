"""An invoice is the sum of its lines; each is rounded once, and the tax is of the exact amounts."""

from decimal import ROUND_HALF_EVEN, Decimal

import pytest
from django.core.exceptions import ValidationError
from hypothesis import given, settings
from hypothesis import strategies as st

from billing.amounts import rounded
from billing.invoicing.content import stated_by
from billing.invoicing.lines import Kind
from billing.invoicing.tests.making import close, finalise, make_price, stated, use, utc
from billing.invoicing.totals import Terms, with_totals
from billing.models import BillingAccount, Credit, InvoiceLine
from billing.partitions import month_of
from tenants.models import Tenant

MONTH = month_of(utc("2026-03-01"))
D = Decimal


def lines_of(*amounts: str, currency: str = "USD", kind: str = Kind.USAGE) -> list[InvoiceLine]:
    return [InvoiceLine(kind=kind, exact=D(text), amount=rounded(D(text), currency)) for text in amounts]


def totals(lines: list[InvoiceLine], terms: Terms, *credits: str, currency: str = "USD") -> list[tuple[str, Decimal]]:
    """The lines that follow from `lines`: kind and amount."""
    given = [(Credit(reason="outage"), D(amount)) for amount in credits]
    every = with_totals(lines, terms, given, month=MONTH, currency=currency)
    assert [line.position for line in every] == list(range(1, len(every) + 1))
    return [(line.kind, line.amount) for line in every[len(lines) :]]


@pytest.mark.parametrize(
    ("exact", "currency", "amount"),
    [
        ("0.005", "USD", "0.00"), ("0.015", "USD", "0.02"), ("2.675", "USD", "2.68"), ("2.665", "EUR", "2.66"),
        ("0.5", "JPY", "0"), ("1.5", "JPY", "2"), ("0.0005", "KWD", "0.000"), ("0.0015", "KWD", "0.002"),
        ("-0.015", "USD", "-0.02"), ("0.004999999999", "USD", "0.00"), ("0.005000000001", "USD", "0.01"),
        ("99999999999999999.995", "USD", "100000000000000000.00"),
    ],
)  # fmt: skip
def test_it_rounds_half_to_even_in_the_minor_unit(exact: str, currency: str, amount: str) -> None:
    assert str(rounded(D(exact), currency)) == amount


def test_it_takes_the_tax_of_37_lines_from_their_exact_sum() -> None:
    lines = lines_of(*["0.0149"] * 37)
    reference = (37 * D("0.0149") * D("0.2")).quantize(D("0.01"), ROUND_HALF_EVEN)
    assert totals(lines, Terms(tax_rate=D(20))) == [("tax", reference)] == [("tax", D("0.11"))]
    assert sum(line.amount for line in lines) + reference == D("0.48")


def test_it_takes_discount_fee_credits_and_tax_in_this_order() -> None:
    terms = Terms(tax_rate=D(19), discount_percent=D(10), minimum_fee=D(50))
    assert totals(lines_of("10.005", "20.015"), terms, "5", "100") == [
        ("discount", D("-3.00")),
        ("minimum_fee", D("22.98")),  # 10.00 + 20.02 - 3.00 + 22.98 = 50.00
        ("credit", D("-5.00")),
        ("credit", D("-45.00")),
        ("tax", D("0.00")),
    ]


def test_it_asks_no_fee_of_whom_uses_more_and_counts_no_adjustments_into_it() -> None:
    terms = Terms(minimum_fee=D(50))
    assert totals(lines_of("50"), terms) == []
    assert totals(lines_of("20") + lines_of("40", kind=Kind.ADJUSTMENT), terms) == [("minimum_fee", D("30.00"))]


amount = st.decimals(0, 10_000, places=12)
percent = st.decimals(0, 100, places=3)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(amount, max_size=12), st.lists(amount, max_size=4), percent, percent,
    st.sampled_from(["JPY", "USD", "KWD"]), st.decimals(0, 5000, places=0),
    st.lists(st.decimals(1, 3000, places=0), max_size=3),
)  # fmt: skip
def test_it_adds_up_in_any_currency(
    used: list[Decimal], late: list[Decimal], tax: Decimal, discount: Decimal, currency: str, fee: Decimal,
    credits: list[Decimal],
) -> None:  # fmt: skip
    lines = lines_of(*map(str, used), currency=currency)
    lines += lines_of(*map(str, late), currency=currency, kind=Kind.ADJUSTMENT)
    given = [(Credit(reason="x"), credit) for credit in credits]
    every = with_totals(lines, Terms(tax, discount, fee), given, month=MONTH, currency=currency)
    for line in every:
        assert line.amount == rounded(line.amount, currency)
        if line.kind not in (Kind.MINIMUM_FEE, Kind.DISCOUNT):
            assert line.amount == rounded(line.exact, currency)
    net = [line for line in every if line.kind != Kind.TAX]
    own = [line for line in net if line.kind not in (Kind.CREDIT, Kind.ADJUSTMENT) and "adjust" not in line.description]
    assert sum(line.amount for line in own) >= (fee if any(line.kind == Kind.MINIMUM_FEE for line in own) else 0)
    assert sum((line.amount for line in net), D(0)) >= 0
    taxes = sum((line.amount for line in every if line.kind == Kind.TAX), D(0))
    assert taxes == rounded(sum((line.exact for line in net), D(0)) * tax / 100, currency)


@pytest.mark.django_db
def test_it_uses_a_credit_up_over_several_invoices_and_never_beyond(acme: Tenant) -> None:
    price = make_price(input="1")
    BillingAccount.objects.update(tax_rate="20")
    credit = Credit.objects.create(tenant=acme, amount="2.50", currency="EUR", reason="outage in February")
    Credit.objects.create(tenant=acme, amount="9", currency="USD", reason="in another currency")
    for month in (3, 4, 5):
        use(f"2026-{month:02}-05 12:00", price, tokens=(1_000_000, 0, 0))
    drafts = close(utc("2026-06-02"))
    invoices = [finalise(draft) for draft in drafts]
    assert [(invoice.net, invoice.tax, invoice.total) for invoice in invoices] == [
        (0, 0, 0),
        (0, 0, 0),
        (D("0.50"), D("0.10"), D("0.60")),
    ]
    assert credit.remaining == 0
    assert [kind for kind, *_ in stated(invoices[2])] == ["usage", "credit", "tax"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("currency", "granted", "used"), [("EUR", "0.006", "0"), ("EUR", "0.999", "0.99"), ("JPY", "1.9", "1")]
)
def test_it_uses_no_more_of_a_credit_than_there_is(acme: Tenant, currency: str, granted: str, used: str) -> None:
    Tenant.objects.update(currency=currency)
    use("2026-03-05 12:00", make_price(input="5", currency=currency), tokens=(1_000_000, 0, 0), currency=currency)
    credit = Credit.objects.create(tenant=acme, amount=granted, currency=currency, reason="outage")
    invoice = finalise(close(utc("2026-04-02"))[0])
    assert (invoice.total, credit.remaining) == (5 - D(used), D(granted) - D(used))
    acme.refresh_from_db()
    with pytest.raises(ValidationError, match="no such small units"):
        Credit(tenant=acme, amount=D(granted), currency=currency, reason="outage").full_clean()
    with pytest.raises(ValidationError, match=f"is invoiced in {currency}"):
        Credit(tenant=acme, amount=1, currency="CHF", reason="outage").full_clean()


@pytest.mark.django_db
@pytest.mark.parametrize(("currency", "total"), [("JPY", "148"), ("KWD", "148.148")])
def test_it_rounds_to_the_tenants_currency(acme: Tenant, currency: str, total: str) -> None:
    Tenant.objects.update(currency=currency)
    price = make_price(input="1200", currency=currency)
    use("2026-03-05 12:00", price, tokens=(123_457, 0, 0), currency=currency)  # 148.1484
    invoice = finalise(close(utc("2026-06-02"))[0])
    assert (invoice.total, stated_by(invoice)["total"]) == (D(total), total)
