"""The arithmetic of a run."""

from dataclasses import replace

import pytest

from headrace_dev.bench.figures import Figures, Spent, figures, middle, percentile
from headrace_dev.bench.load import Result


def test_it_takes_the_nearest_rank() -> None:
    values = list(range(1, 101))
    assert [percentile(values, p) for p in (0, 1, 50, 99, 100)] == [1, 1, 50, 99, 100]
    assert percentile([7], 99) == 7
    assert percentile([3, 1, 2], 50) == 2
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)


def test_it_charges_a_stream_what_the_idle_server_would_not_have_used() -> None:
    result = Result(ttft=[3_000_000], delays=[500_000] * 99 + [9_000_000], failed=["lost"])
    run = figures(result, Spent(wall=10, cpu=0.5, redis=0.2), idle=Spent(wall=2, cpu=0.02, redis=0.0))
    assert run.cpu_ms == pytest.approx((0.5 - 0.1) * 1000 / 2)
    assert run.failed == 1
    assert run.redis_cpu_ms == pytest.approx(100)
    assert run.idle_cpu_ms == pytest.approx(10)
    assert (run.ttft_p50_ms, run.ttft_p99_ms, run.delay_p50_ms, run.delay_p99_ms) == (3.0, 3.0, 0.5, 0.5)


def flat(value: float) -> Figures:
    return Figures(*[value] * 8)


def test_it_adds_over_the_direct_run() -> None:
    added = flat(5).over(flat(2))
    assert (added.added_ttft_p50_ms, added.added_ttft_p99_ms, added.added_delay_p99_ms) == (3, 3, 3)
    assert added.cpu_ms == 5


def test_it_takes_the_median_of_each_figure_and_the_sum_of_failures() -> None:
    assert middle([flat(1), flat(9), flat(2)]) == replace(flat(2), failed=12)
