"""A day's load, what it costs, and the break-even with a hosted price."""

import pytest

from engines.sizing import day
from engines.sizing.tests.questions import chat


def test_it_pays_for_idle_hours_unless_replicas_follow_the_load() -> None:
    answer = chat(curve="office", gpu_hour=2.5)
    assert answer.cost is not None
    assert answer.day.gpu_hours == 24 * answer.gpus
    assert answer.day.gpu_hours_following < 0.7 * answer.day.gpu_hours
    assert answer.cost.per_million_output > answer.cost.per_million_output_following
    assert answer.cost.per_million_output_following >= answer.cost.per_million_output_at_capacity * 0.99
    assert answer.cost.per_day == pytest.approx(answer.day.gpu_hours * 2.5)


def test_it_counts_a_days_tokens() -> None:
    flat = chat(curve="flat").day
    assert flat.requests == pytest.approx(200 * 86_400)
    assert flat.output_tokens == pytest.approx(200 * 86_400 * 300)
    assert max(flat.gpus_by_hour) == min(flat.gpus_by_hour)


def test_it_breaks_even_where_both_cost_the_same() -> None:
    answer = chat(gpu_hour=2.5, hosted_input=0.05, hosted_output=0.08)
    even = answer.break_even
    assert even is not None
    hosted_hour = even.rate * 3600 * (2000 * 0.05 + 300 * 0.08) / 1e6
    assert hosted_hour == pytest.approx(answer.gpus * 2.5)
    assert even.cheaper == "own GPUs"
    dear = chat(gpu_hour=25, hosted_input=0.05, hosted_output=0.08).break_even
    assert dear is not None
    assert dear.cheaper == "hosted"
    assert dear.utilisation > 1


def test_it_says_nothing_of_money_without_prices() -> None:
    assert chat().cost is None


def test_it_takes_a_curve_of_24_shares() -> None:
    shares = ",".join(["0.25"] * 12 + ["1"] * 12)
    assert chat(curve=shares).day.requests == pytest.approx(200 * 86_400 * 0.625)
    assert all(max(each) == 1 and len(each) == 24 for each in day.CURVES.values())


def test_it_charges_for_both_pools() -> None:
    answer = chat(disaggregate=True, gpu_hour=2, spare=1)
    assert answer.pools is not None
    assert answer.cost is not None
    assert answer.gpus == answer.pools.prefill_replicas + answer.pools.decode_replicas + 2
    assert answer.cost.per_day == pytest.approx(24 * answer.gpus * 2)
    assert 0 < answer.day.utilisation < 1
