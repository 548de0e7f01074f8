"""The checks of invoices: lines, totals, copies, hashes, months and numbers."""

import pytest

from billing.invoicing.crediting import credit_invoice
from billing.invoicing.tests.making import close, finalise, make_customer, make_price, make_seller, use, utc
from billing.invoicing.voiding import void_invoice
from billing.ledger_check.tests.books import damage, found
from billing.models import Invoice

pytestmark = pytest.mark.django_db
NAMES = ("invoices", "invoiced_usage", "numbers")


@pytest.fixture(autouse=True)
def three_months() -> None:
    """Two finalised invoices, the second with an adjustment for the first, and a draft; a discount and taxes."""
    make_customer("acme", make_seller(), time_zone="Asia/Kolkata", tax_rate=19, discount_percent=3)
    price = make_price()
    for day in (1, 15, 31):
        use(f"2026-03-{day:02d} 18:29:59", price, tokens=(1234567, 89, 777))
    finalise(close(utc("2026-04-09"))[0])
    use("2026-03-20 12:00", price, tokens=(1000, 10, 5))
    use("2026-04-20 12:00", price)
    finalise(close(utc("2026-05-09"))[0])
    use("2026-04-21 12:00", price, tokens=(10, 10, 5), project="late")
    use("2026-05-21 12:00", price)
    close(utc("2026-06-09"))


def differences() -> list[str]:
    return [line for name in NAMES for line in found(name).differences]


def test_it_agrees_with_what_was_invoiced_adjusted_and_is_late() -> None:
    assert differences() == []
    assert [found(name).compared > 0 for name in NAMES] == [True, True, True]


def test_it_agrees_after_a_void_and_a_credit_note() -> None:
    first, second = Invoice.objects.filter(status="finalised").order_by("period_start")
    void_invoice(second.pk, reason="wrong address")
    credit_invoice(first.pk, reason="goodwill")
    assert differences() == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE billing_invoiceline SET amount = amount + 0.01 WHERE kind = 'usage' AND position = 1", "are not"),
        ("UPDATE billing_invoiceline SET amount = amount + 0.01 WHERE kind = 'tax'", "its lines are"),
        ("UPDATE billing_invoiceline SET amount = amount + 0.001 WHERE kind = 'tax'", "minor units"),
        ("UPDATE billing_invoiceline SET quantity = quantity + 1 WHERE kind = 'usage'", "are not"),
        ("UPDATE billing_invoiceline SET unit_price = 7 WHERE kind = 'adjustment'", "is not the price of demo@1"),
        ("UPDATE billing_invoiceline SET token_class = 'gift' WHERE kind = 'usage'", "gift is no class of tokens"),
        ("UPDATE billing_invoiceline SET model = 'x' WHERE kind = 'usage'", "price of demo in EUR, not of x in EUR"),
        ("UPDATE billing_invoiceline SET description = 'x'", "is not as it was copied"),
        ("DELETE FROM billing_invoiceline WHERE kind = 'tax'", "of its copy are gone"),
        ("UPDATE billing_invoice SET total = total + 1, net = net + 1 WHERE number IS NOT NULL", "its copy states"),
        ("UPDATE billing_invoice SET content = content || '{\"a\": 1}' WHERE number IS NOT NULL", "was hashed"),
        ("UPDATE billing_usagehour SET output_tokens = output_tokens + 1", "invoices state"),
        ("DELETE FROM billing_lateusage WHERE invoice_id IS NULL", "0 came late"),
        ("UPDATE billing_invoice SET sequence = 9 WHERE sequence = 2", "are numbered 1 to 9"),
        ("UPDATE billing_legalentity SET next_number = 9", "the next is 9"),
    ],
)
def test_it_sees(change: str, said: str) -> None:
    damage(change)
    assert said in "\n".join(differences())
