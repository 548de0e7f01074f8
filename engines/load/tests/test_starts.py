"""When an engine counts as started anew."""

from engines.load.starts import Starts
from engines.protocols.reading import Reading


def test_it_sees_a_counter_that_fell() -> None:
    starts = Starts()
    assert not starts.answered(1, Reading(prefilled_tokens=5000, output_tokens=900))
    assert not starts.answered(2, Reading(prefilled_tokens=5000))
    assert starts.answered(3, Reading(prefilled_tokens=6))
    assert starts.at == 3


def test_it_counts_a_start_once_though_some_counters_are_told_later() -> None:
    """A page that is asked now and then tells its counters long after the others fell."""
    starts = Starts()
    assert not starts.answered(1, Reading(prefilled_tokens=5000, output_tokens=900))
    assert starts.answered(2, Reading(prefilled_tokens=6))
    assert not starts.answered(12, Reading(prefilled_tokens=900, output_tokens=0))
    assert not starts.answered(13, Reading(prefilled_tokens=901, output_tokens=1))
    starts.gone()
    assert starts.answered(14, Reading(running=0))
    assert not starts.answered(24, Reading(running=0, prefilled_tokens=3, output_tokens=0))


def test_it_takes_an_engine_that_was_gone_for_a_new_one_unless_its_counters_went_on() -> None:
    starts = Starts()
    assert not starts.answered(1, Reading(running=0))
    starts.gone()
    assert starts.answered(2, Reading(running=0))
    assert not starts.answered(3, Reading(running=0, prompt_tokens=4000))
    starts.gone()  # its address was away, and not the engine
    assert not starts.answered(4, Reading(running=0, prompt_tokens=4000))
    starts.gone()
    assert starts.answered(5, Reading(running=0, prompt_tokens=3))


def test_it_forgives_a_counter_that_wavers() -> None:
    starts = Starts()
    assert not any(starts.answered(at, Reading(output_tokens=tokens)) for at, tokens in enumerate([400, 390, 410, 401]))
