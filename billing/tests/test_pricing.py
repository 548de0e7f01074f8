"""The arithmetic of prices is exact: no rounding, whatever the sizes; and it is linear, so rollups may be priced."""

from decimal import Decimal, Inexact

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.pricing import Rates, cost, nano, text, worst_nano

rate = st.decimals(0, 10**9, places=6)
rates = st.builds(Rates, rate, rate, rate)
counts = st.tuples(st.integers(0, 10**12), st.integers(0, 10**12), st.integers(0, 10**12))


def of(rates: Rates, use: tuple[int, int, int]) -> Decimal:
    uncached, cached, output = use
    return cost(rates, input_tokens=uncached + cached, cached_input_tokens=cached, output_tokens=output)


def test_it_charges_each_class_of_tokens_at_its_rate() -> None:
    rates = Rates(Decimal("0.50"), Decimal("0.05"), Decimal("1.50"))
    assert of(rates, (600, 400, 200)) == Decimal("0.00062")  # 0.0003 + 0.00002 + 0.0003


def test_a_small_request_is_never_rounded_away() -> None:
    rates = Rates(Decimal("0.05"), Decimal("0.05"), Decimal("0.05"))
    assert of(rates, (3, 0, 0)) * 10_000 == Decimal("0.0015")
    assert of(Rates(Decimal("0.000001"), Decimal(0), Decimal(0)), (1, 0, 0)) == Decimal("1e-12")


@given(rates, counts, counts)
def test_costs_at_the_same_rates_add_up(rates: Rates, one: tuple[int, int, int], two: tuple[int, int, int]) -> None:
    together = (one[0] + two[0], one[1] + two[1], one[2] + two[2])
    assert of(rates, one) + of(rates, two) == of(rates, together)


@given(rates, counts)
def test_the_worst_case_covers_every_split_into_cached_and_not(rates: Rates, use: tuple[int, int, int]) -> None:
    uncached, cached, output = use
    worst = worst_nano(rates, input_tokens=uncached + cached, output_tokens=output)
    assert worst >= nano(of(rates, use)) >= 0


@pytest.mark.parametrize(
    ("amount", "units"),
    [("0", 0), ("0.000000001", 1), ("0.000000000001", 1), ("0.000000001001", 2), ("9000000", 9 * 10**15)],
)
def test_budgets_count_whole_units_rounded_up(amount: str, units: int) -> None:
    assert nano(Decimal(amount)) == units


def test_amounts_are_written_as_digits() -> None:
    assert text(Decimal("1E-12")) == "0.000000000001"
    assert text(Decimal("0E-12")) == "0.000000000000"


def test_it_refuses_what_it_could_only_round() -> None:
    too_fine = Rates(Decimal(f"1000000000.{1:070d}"), Decimal(0), Decimal(1))
    with pytest.raises(Inexact):
        cost(too_fine, input_tokens=1, cached_input_tokens=0, output_tokens=1)
