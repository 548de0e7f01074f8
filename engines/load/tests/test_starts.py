"""When an engine counts as started anew."""

from engines.load.starts import Starts
from engines.protocols.reading import Reading


def test_it_sees_a_counter_that_fell() -> None:
    starts = Starts()
    assert not starts.answered(1, Reading(prefilled_tokens=5000, output_tokens=900))
    assert not starts.answered(2, Reading(prefilled_tokens=5000))
    assert starts.answered(3, Reading(prefilled_tokens=6))
    assert starts.at == 3
    assert starts.answered(4, Reading(prefilled_tokens=8, output_tokens=0))  # told only now and then
    assert not starts.answered(5, Reading(prefilled_tokens=9, output_tokens=1))


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
