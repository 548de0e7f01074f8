"""An upstream that gives more than max_tokens, or says that it did: a hard budget is charged no more than it held."""

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from billing.models import Budget
from headrace.gateway.tests.calling import Place
from headrace_dev.testing.budgets import add_budget, counter, kept, wait_counted
from headrace_dev.testing.upstream import ScriptedUpstream
from headrace_dev.testing.world import at_rest

UNIT = 10**9
ASKED = 20
STOP = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


@pytest.fixture(autouse=True)
def keeping() -> Iterator[None]:
    with kept():
        yield


def output(tokens: int, index: int = 0, name: str = "content") -> dict[str, Any]:
    """An event of a token, as an engine tells its use as it goes."""
    usage = {"prompt_tokens": 9, "completion_tokens": tokens, "total_tokens": 9 + tokens}
    return {"choices": [{"index": index, "delta": {name: "tok "}}], "usage": usage}


@pytest.fixture
def budget(place: Place) -> tuple[Budget, str, str]:
    """A hard budget of 25 units, of which a token of output costs one; its key, and its model."""
    model = place.add_model()
    place.world.price(model=model, input="0", cached_input="0", output="1000000")
    key, secret = place.world.add_key()
    found = add_budget(place.world, 25, f"over-{model[-6:]}", key=key.public_id)
    place.world.wait_followed()
    wait_counted(found)
    return found, secret, model


@pytest.mark.parametrize("name", ["content", "reasoning_content"])
def test_what_goes_on_is_cut_and_a_hard_budget_is_charged_what_it_held(
    place: Place,
    engine: ScriptedUpstream,
    valkey: "redis.Redis",
    budget: tuple[Budget, str, str],
    name: str,
) -> None:
    found, secret, model = budget
    before = place.metric("headrace_overruns_total", model=model, **{"class": "output"})
    events = [output(number + 1, name=name) for number in range(500)]
    answer = place.events_from_upstream([*events, STOP], stream=True, model=model, max_tokens=ASKED, secret=secret)
    assert (answer.status, answer.error["code"], answer.is_done) == (200, "upstream_error", False)
    assert ASKED < len(answer.events) < 100
    record = answer.record
    assert (record["status"], record["output_tokens"]) == ("error", ASKED)
    assert record["reasoning_tokens"] <= ASKED
    at_rest(valkey)
    assert counter(valkey, found).spent == ASKED * UNIT
    assert place.metric("headrace_overruns_total", model=model, **{"class": "output"}) == before + 1
    engine.wait_until_idle()


def test_a_few_more_than_asked_for_are_delivered_and_not_billed(
    place: Place, valkey: "redis.Redis", budget: tuple[Budget, str, str]
) -> None:
    found, secret, model = budget
    events = [output(number + 1) for number in range(ASKED + 9)]
    answer = place.events_from_upstream([*events, STOP], stream=True, model=model, max_tokens=ASKED, secret=secret)
    assert (answer.status, answer.is_done) == (200, True)
    assert answer.record["output_tokens"] == ASKED
    at_rest(valkey)
    assert counter(valkey, found).spent == ASKED * UNIT


@pytest.mark.parametrize("told", [ASKED + 1, 10 * ASKED])
def test_a_count_beyond_what_was_asked_for_is_not_believed(
    place: Place, valkey: "redis.Redis", budget: tuple[Budget, str, str], told: int
) -> None:
    found, secret, model = budget
    usage = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": told}}
    events = [{"choices": [{"index": 0, "delta": {"content": "tok " * 50}}]}, STOP, usage]
    answer = place.events_from_upstream(events, stream=True, model=model, max_tokens=ASKED, secret=secret)
    assert (answer.status, answer.is_done) == (200, True)
    assert 0 < answer.record["output_tokens"] <= ASKED
    at_rest(valkey)
    assert counter(valkey, found).spent <= ASKED * UNIT


def test_of_two_choices_each_may_have_all_that_was_asked_for(
    place: Place, valkey: "redis.Redis", budget: tuple[Budget, str, str]
) -> None:
    found, secret, model = budget
    events = [output(number + 1, index) for number in range(10) for index in (0, 1)]
    stops: list[Any] = [{"choices": [{"index": n, "delta": {}, "finish_reason": "length"}]} for n in (0, 1)]
    answer = place.events_from_upstream(events + stops, stream=True, model=model, max_tokens=10, n=2, secret=secret)
    assert answer.is_done
    assert (answer.record["output_tokens"], answer.record["usage_source"]) == (20, "reported")
    at_rest(valkey)
    assert counter(valkey, found).spent == 20 * UNIT
