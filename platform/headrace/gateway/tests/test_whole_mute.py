"""A replica that is healthy by its probe and mute to requests costs a whole answer a first byte's time, and no more."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from headrace.gateway.tests.calling import Place
from headrace.gateway.tests.fleet import scripted_fleet
from headrace_dev.testing.upstream import ScriptedUpstream


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


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_mute_replica_is_asked_few_of_many_calls(place: Place, fleet: list[ScriptedUpstream], stream: bool) -> None:
    """Also where others were answered by it of late, so that a tenant's timeouts count for nothing to its breaker."""
    other = Place(place.web, place.upstream)
    for upstream in fleet:
        upstream.reset()
    timeouts: dict[str, Any] = {"first_byte_timeout": 0.3, "total_timeout": 20.0}
    model = place.add_route([upstream.url for upstream in fleet], policy="round_robin", **timeouts)
    other.world.model = model
    other.wait_known(model)
    assert [other.chat().status for _ in fleet] == [200] * 3
    fleet[0].reset()
    fleet[0].script(headers_only=True)
    answers = [place.chat(model=model, stream=stream) for _ in range(24)]
    assert [answer.status for answer in answers] == [200] * 24
    assert sum(answer.record["fallback"] for answer in answers) == len(fleet[0].requests()) <= 3


def test_calls_at_once_find_a_mute_replica_out_together(place: Place, fleet: list[ScriptedUpstream]) -> None:
    for upstream in fleet:
        upstream.reset()
    timeouts: dict[str, Any] = {"first_byte_timeout": 0.3, "total_timeout": 20.0}
    model = place.add_route([upstream.url for upstream in fleet], policy="round_robin", **timeouts)
    fleet[0].script(headers_only=True)
    with ThreadPoolExecutor(24) as pool:
        answers = [each for _ in range(2) for each in pool.map(lambda _: place.chat(model=model), range(24))]
    assert [answer.status for answer in answers] == [200] * 48
    assert 1 <= len(fleet[0].requests()) <= 9


def test_mute_replica_is_asked_where_nobody_else_can_be(place: Place, fleet: list[ScriptedUpstream]) -> None:
    fleet[0].reset()
    model = place.add_route([fleet[0].url], first_byte_timeout=0.3, total_timeout=20.0)
    fleet[0].scripts({"headers_only": True})
    assert [place.chat(model=model).status for _ in range(2)] == [504, 200]
