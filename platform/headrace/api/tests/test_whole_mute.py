"""A replica that is healthy by its probe and mute to requests costs a whole answer a first byte's time, and no more."""

import time
from collections.abc import Iterator

import pytest

from headrace.api.tests.calling import Place
from headrace.api.tests.fleet import scripted_fleet
from headrace.testing.upstream import ScriptedUpstream


@pytest.fixture(scope="module")
def fleet() -> Iterator[list[ScriptedUpstream]]:
    with scripted_fleet(3) as fleet:
        yield fleet


def test_every_whole_answer_comes_although_one_of_three_is_mute(place: Place, fleet: list[ScriptedUpstream]) -> None:
    urls = [upstream.url for upstream in fleet]
    model = place.add_route(urls, policy="round_robin", first_byte_timeout=1.5, total_timeout=20.0)
    fleet[0].script(headers_only=True)
    answers = []
    for _ in range(6):
        began = time.monotonic()
        answers.append(place.chat(model=model))
        assert time.monotonic() - began < 20
    assert [answer.status for answer in answers] == [200] * len(answers)
    assert [answer.text for answer in answers] == ["tok0 tok1 tok2 tok3 tok4 "] * len(answers)
    assert {answer.record["fallback"] for answer in answers} == {0, 1}
    assert all(answer.record["usage_source"] == "reported" for answer in answers)


def test_short_whole_answer_is_not_asked_for_as_a_stream(place: Place, fleet: list[ScriptedUpstream]) -> None:
    for upstream in fleet:
        upstream.reset()
    model = place.add_route([upstream.url for upstream in fleet])
    assert place.chat(model=model, max_tokens=50).status == 200
    assert place.chat(model=model, max_tokens=5000).status == 200
    streamed = [seen["body"]["stream"] for upstream in fleet for seen in upstream.requests()]
    assert sorted(streamed) == [False, True]


def test_engine_that_answers_whole_all_the_same_is_taken(place: Place, fleet: list[ScriptedUpstream]) -> None:
    message = {"role": "assistant", "content": "whole"}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    for upstream in fleet:
        upstream.reset()
        upstream.script(status=200, body=body)
    model = place.add_route([upstream.url for upstream in fleet])
    answer = place.chat(model=model, max_tokens=5000)
    assert (answer.status, answer.text) == (200, "whole")
