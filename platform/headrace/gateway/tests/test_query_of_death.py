"""A request at which engines break reaches two of them at most, also when its client asks again."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from headrace.gateway.tests.calling import Answer, Hosted, Place
from headrace.gateway.tests.fleet import scripted_fleet
from headrace_dev.testing.upstream import ScriptedUpstream, prompt
from headrace_dev.testing.web import WebProcess

STREAMED = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
ENVOY = "upstream connect error or disconnect/reset before headers. reset reason: connection termination"
VLLM = {
    "error": {"message": "EngineCore encountered an issue. See stack trace (above) for the root cause.", "code": 500}
}
TGI = {"error": "Request failed during generation: Server error: transport error", "error_type": "generation"}
DEADLY: dict[str, dict[str, Any]] = {
    "reset": {"drop_after": 0},
    "reset before a byte": {"no_answer": True},
    "closed": {"drop_after": 0, "drop": "close", "headers_first": True},
    "a proxy says so": {"status": 502},
    "Envoy says so": {"status": 503, "body": ENVOY, "content_type": "text/plain"},
    "vLLM's last words": {"status": 500, "body": json.dumps(VLLM)},
    "vLLM's last words in a 200": {"status": 200, "body": json.dumps(VLLM)},
    "TGI's last words": {"status": 424, "body": json.dumps(TGI)},
}


@pytest.fixture(scope="module")
def fleet() -> Iterator[list[ScriptedUpstream]]:
    with scripted_fleet(5) as fleet:
        yield fleet


@pytest.fixture
def many(place: Place, fleet: list[ScriptedUpstream]) -> Iterator[Place]:
    """A model with five replicas."""
    for upstream in fleet:
        upstream.reset()
    own = place.world.model
    place.world.model = place.add_route([upstream.url for upstream in fleet], policy="round_robin")
    yield place
    place.world.model = own


def reached(fleet: list[ScriptedUpstream]) -> tuple[int, int]:
    """How many replicas got a chat, and how many chats there were."""
    counts = [len(upstream.requests()) for upstream in fleet]
    return sum(count > 0 for count in counts), sum(counts)


def is_refused(answer: Answer) -> bool:
    return (answer.status, answer.error["code"], answer.error["param"]) == (400, "prompt_quarantined", "messages")


@STREAMED
@pytest.mark.parametrize("form", DEADLY)
@pytest.mark.parametrize("is_warm", [True, False], ids=["kept-alive", "fresh"])
def test_it_reaches_two_replicas_however_often_it_is_sent(
    many: Place, fleet: list[ScriptedUpstream], form: str, is_warm: bool, stream: bool
) -> None:
    if is_warm:
        assert [many.chat(stream=stream).status for _ in fleet] == [200] * len(fleet)
        for upstream in fleet:
            upstream.reset()
    deadly = prompt(f"{form} {is_warm} {stream}", **DEADLY[form])
    first = many.chat(deadly, stream=stream)
    assert first.status == 502
    assert reached(fleet) == (2, 2)
    labels = first.record["labels"]
    assert len(labels["engines_broken"].split("; ")) == 2
    assert labels["quarantined"] == "yes"
    variations: list[dict[str, Any]] = [
        {"stream": stream},
        {"stream": not stream},
        {"max_tokens": 7},
        {"user": "someone"},
        {"seed": 1},
    ]
    again = [many.chat(deadly, **fields) for fields in variations]
    assert [is_refused(answer) for answer in again] == [True] * len(variations)
    assert 1 <= int(again[0].headers["retry-after"]) <= 300
    assert reached(fleet) == (2, 2)
    assert many.chat("harmless", stream=stream).status == 200
    assert many.metric("headrace_quarantined_prompts") >= 1


def test_breaks_after_the_first_byte_count_over_a_client_s_retries(many: Place, fleet: list[ScriptedUpstream]) -> None:
    deadly = prompt("later", drop_after=2)
    answers = [many.chat(deadly, stream=True) for _ in range(2)]
    assert [answer.error["code"] for answer in answers] == ["upstream_disconnected"] * 2
    assert is_refused(many.chat(deadly, stream=True))
    assert is_refused(many.chat(deadly))
    assert reached(fleet)[1] == 2


@STREAMED
def test_a_request_that_hangs_engines_reaches_two_of_them(
    place: Place, fleet: list[ScriptedUpstream], engine: ScriptedUpstream, stream: bool
) -> None:
    """Also where none of them answered anybody of late. A provider may be asked all the same."""
    for upstream in fleet:
        upstream.reset()
        upstream.script(headers_only=True)
    urls = [upstream.url for upstream in fleet]
    quick: dict[str, Any] = {"policy": "round_robin", "first_byte_timeout": 0.3, "total_timeout": 10.0}
    alone = place.add_route(urls, **quick)
    assert place.chat("hang", model=alone, stream=stream).status == 504
    assert reached(fleet) == (2, 2)
    beside = place.add_route(urls[:3], urls[3:], Hosted(engine.url), **quick)
    answer = place.chat("hang", model=beside, stream=stream)
    assert (answer.status, answer.record["fallback"]) == (200, 2)
    assert reached(fleet)[1] == 4


def test_a_client_that_wants_no_fallback_is_refused_after_its_second_try(
    many: Place, fleet: list[ScriptedUpstream]
) -> None:
    deadly = prompt("alone", drop_after=0, headers_first=True)
    statuses = [many.chat(deadly, headers={"x-headrace-fallback": "off"}).status for _ in range(3)]
    assert statuses == [502, 502, 400]
    assert reached(fleet)[0] == 2


def test_a_prompt_that_is_answered_after_all_is_innocent(many: Place, fleet: list[ScriptedUpstream]) -> None:
    for _ in range(3):
        for upstream in fleet:
            upstream.reset()
        fleet[0].script(status=502)
        answers = [many.chat("unlucky") for _ in range(2 * len(fleet))]
        assert [answer.status for answer in answers] == [200] * len(answers)


def test_another_tenant_s_equal_prompt_is_not_refused(many: Place, fleet: list[ScriptedUpstream]) -> None:
    for upstream in fleet:
        upstream.script(status=502)
    assert [many.chat("hello there").status for _ in range(2)] == [502, 400]
    for upstream in fleet:
        upstream.reset()
    other = Place(many.web, fleet[0])
    other.world.model = many.world.model
    assert other.chat("hello there").status == 200


def test_engines_that_refuse_or_fail_in_order_are_no_broken_ones(many: Place, fleet: list[ScriptedUpstream]) -> None:
    for upstream in fleet[:4]:
        upstream.script(status=500)
    assert many.chat("in order").status == 200
    assert "engines_broken" not in many.chat("in order").record["labels"]


def test_every_web_process_refuses_it(many: Place, fleet: list[ScriptedUpstream], quick_web: WebProcess) -> None:
    elsewhere = many.at(quick_web)
    elsewhere.wait_known(many.world.model)
    deadly = prompt(f"everywhere {quick_web.url}", drop_after=0, headers_first=True)
    assert many.chat(deadly).status == 502
    assert is_refused(elsewhere.chat(deadly))
    assert reached(fleet)[0] == 2
