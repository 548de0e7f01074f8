"""Amounts as they are written: nothing small looks like nothing, nothing unknown looks like zero."""

from decimal import Decimal

import pytest

from billing.amounts import column, plain, priced, spent, summed, telling


@pytest.mark.parametrize(
    ("value", "shown"),
    [("0", "0.00"), ("1234.5", "1,234.50"), ("0.5", "0.50"), ("-0.0002", "-0.00020"), ("0.0000000001", "0.000000000")],
)
def test_it_shows_the_first_digits_of_small_ones(value: str, shown: str) -> None:
    assert telling(Decimal(value), 2) == shown


def test_nothing_known_is_a_dash() -> None:
    assert telling(None) == "-"


@pytest.mark.parametrize(
    ("currency", "amount", "sum_", "cost", "price"),
    [
        ("EUR", "1234.5", "1,234.50 EUR", "1,234.50 EUR", "1,234.50 EUR"),
        ("EUR", "0", "0.00 EUR", "0.00 EUR", "0.00 EUR"),
        ("EUR", "0.0012345", "< 0.01 EUR", "0.001234 EUR", "0.0012345 EUR"),
        ("EUR", "0.00000012", "< 0.01 EUR", "< 0.000001 EUR", "0.00000012 EUR"),
        ("EUR", "-0.005", "\u2212< 0.01 EUR", "\u22120.005000 EUR", "-0.005 EUR"),
        ("EUR", "-7.125", "\u22127.12 EUR", "\u22127.12 EUR", "-7.125 EUR"),
        ("JPY", "1234.5", "1,234 JPY", "1,234 JPY", "1,234.5 JPY"),
        ("JPY", "3", "3 JPY", "3 JPY", "3 JPY"),
        ("KWD", "1.0005", "1.000 KWD", "1.000 KWD", "1.0005 KWD"),
        ("EUR", "9007199254740993.123456789012", "9,007,199,254,740,993.12 EUR",
         "9,007,199,254,740,993.12 EUR", "9,007,199,254,740,993.123456789012 EUR"),
    ],
)  # fmt: skip
def test_it_writes_sums_costs_and_prices(currency: str, amount: str, sum_: str, cost: str, price: str) -> None:
    value = Decimal(amount)
    assert (summed(value, currency), spent(value, currency), priced(value, currency)) == (sum_, cost, price)


def test_columns_align_and_show_no_cost_as_none() -> None:
    values = [None, "0", "12.5", "0.0000004", "0.00001"]
    assert [column(None if value is None else Decimal(value)) for value in values] == [
        "unpriced", "0.000000", "12.500000", "< 0.000001", "0.000010",
    ]  # fmt: skip


def test_what_is_not_known_is_no_zero() -> None:
    assert (summed(None, "EUR"), spent(None, "EUR"), priced(None, "EUR")) == ("\u2013", "unpriced", "\u2013")


@pytest.mark.parametrize(
    ("value", "text"), [("1.50", "1.5"), ("100", "100"), ("1E+3", "1000"), ("0.000000001", "0.000000001")]
)
def test_plain_ones_have_no_idle_digits(value: str, text: str) -> None:
    assert plain(Decimal(value)) == text
