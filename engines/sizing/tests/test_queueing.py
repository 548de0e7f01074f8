"""Queueing formulas against their textbook values."""

import math

import pytest

from engines.sizing import queueing
from engines.sizing.lengths import Lengths, Workload


def test_it_knows_erlang_c() -> None:
    assert queueing.erlang_c(1, 0.5) == pytest.approx(0.5)  # M/M/1: the load itself
    assert queueing.erlang_c(2, 1.0) == pytest.approx(1 / 3)
    assert queueing.erlang_c(10, 8.0) == pytest.approx(0.4092, abs=1e-4)
    assert queueing.erlang_c(3, 3.0) == 1


def test_it_waits_as_m_m_1_and_m_d_1() -> None:
    exponential = queueing.wait(1, 0.8, 1.0, service_cv=1, arrival_cv=1)
    constant = queueing.wait(1, 0.8, 1.0, service_cv=0, arrival_cv=1)
    assert exponential is not None
    assert constant is not None
    assert exponential.mean == pytest.approx(0.8 / 0.2)
    assert constant.mean == pytest.approx(exponential.mean / 2)
    assert exponential.beyond(3.0) == pytest.approx(0.8 * math.exp(-0.2 * 3))
    assert exponential.quantile(0.99) == pytest.approx(math.log(80) / 0.2)


def test_it_never_waits_long_enough_when_overloaded() -> None:
    assert queueing.wait(4, 5, 1.0, service_cv=1, arrival_cv=1) is None


def test_it_takes_the_percentile_of_a_sum() -> None:
    nobody = queueing.Wait(0.0, 0.0)
    assert queueing.percentile_of_sum(nobody, [1.0] * 98 + [5.0, 9.0]) == pytest.approx(5.0, rel=1e-4)
    sometimes = queueing.Wait(0.5, 2.0)
    assert queueing.percentile_of_sum(sometimes, [1.0]) == pytest.approx(1 + 2 * math.log(50), rel=1e-4)


def test_it_draws_lognormal_lengths() -> None:
    lengths = Lengths(1000, 1.0)
    grid = lengths.grid(4000)
    assert sum(grid) / len(grid) == pytest.approx(1000, rel=0.01)
    assert lengths.quantile(0.5) == pytest.approx(1000 / math.sqrt(2))
    assert Lengths(700).quantile(0.99) == 700


def test_it_sees_a_running_request_at_a_random_moment() -> None:
    """Equal answers are half done on average, with the deviation of a uniform; varied ones longer (inspection)."""
    mean, deviation = Workload(1, Lengths(1000), Lengths(300)).resident
    assert mean == pytest.approx(1150)
    assert deviation == pytest.approx(300 / math.sqrt(12))
    assert Workload(1, Lengths(1000), Lengths(300, 1.0)).resident[0] == pytest.approx(1300)
