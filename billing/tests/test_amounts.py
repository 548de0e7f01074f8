"""A small amount is not shown as nothing."""

from decimal import Decimal

import pytest

from billing.cost.export import amount


@pytest.mark.parametrize(
    ("value", "shown"),
    [("0", "0.00"), ("1234.5", "1,234.50"), ("0.5", "0.50"), ("-0.0002", "-0.00020"), ("0.0000000001", "0.000000000")],
)
def test_it_shows_the_first_digits_of_small_ones(value: str, shown: str) -> None:
    assert amount(Decimal(value), 2) == shown


def test_nothing_known_is_a_dash() -> None:
    assert amount(None) == "-"
