"""Rates from counters, and counts that survive a restart of the engine."""

from engines.load.figures import Load
from engines.load.rates import Rates
from engines.protocols.reading import Reading


def test_it_makes_a_rate_of_a_counter_over_some_seconds() -> None:
    rates = Rates()
    assert rates.add(0, Reading(output_tokens=100)).output_tokens_per_second is None
    assert rates.add(1, Reading(output_tokens=150)).output_tokens_per_second == 50
    for second in range(2, 11):
        rates.add(second, Reading(output_tokens=150))
    assert rates.add(11, Reading(output_tokens=150)).output_tokens_per_second == 0


def test_it_takes_the_engine_s_own_rate_before_the_counter_s() -> None:
    assert Rates().add(0, Reading(output_rate=7.25, output_tokens=1)).output_tokens_per_second == 7.25


def test_it_begins_anew_when_the_engine_did() -> None:
    rates = Rates()
    rates.add(0, Reading(output_tokens=1000, prompt_tokens=400, cached_tokens=100))
    rates.begin_anew()
    assert rates.add(1, Reading(output_tokens=0)).output_tokens_per_second is None
    assert rates.add(2, Reading(output_tokens=30)).output_tokens_per_second == 30


def test_it_tells_the_hit_rate_of_late_or_else_of_all_time() -> None:
    rates = Rates()
    assert rates.add(0, Reading(prompt_tokens=400, cached_tokens=100)).prefix_hit_rate == 0.25
    assert rates.add(1, Reading(prompt_tokens=500, cached_tokens=190)).prefix_hit_rate == 0.9
    assert Rates().add(0, Reading(prompt_tokens=0, cached_tokens=0)).prefix_hit_rate is None


def test_it_counts_retractions_on_across_restarts_and_silences() -> None:
    rates = Rates()
    told = [rates.add(n, Reading(retractions=value)).retractions for n, value in enumerate([None, 3, None, 5, 1])]
    assert told == [None, 3, 3, 5, 6]


def test_it_keeps_shares_between_0_and_1() -> None:
    load = Rates().add(0, Reading(kv_used=1.7, prefix_hit_rate=-0.1))
    assert (load.kv_used, load.prefix_hit_rate) == (1.0, 0.0)


def test_it_takes_no_figure_that_cannot_be_true() -> None:
    """A sample with one would be refused, and with it all samples of its round, time and again."""
    for wrong in (-1, 2**63, 10**300):
        load = Rates().add(0, Reading(running=wrong, waiting=wrong, waiting_tokens=wrong, kv_capacity=wrong))
        assert load == Load()
        assert Rates().add(0, Reading(retractions=wrong)).retractions is None
    assert Rates().add(0, Reading(output_rate=1e300)).output_tokens_per_second == 1e12
