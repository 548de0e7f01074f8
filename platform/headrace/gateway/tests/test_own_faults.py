"""Requests that no engine gets through leave the engines to the others, whatever form their failures take."""

from collections.abc import Iterator
from typing import Any

import pytest

from headrace.gateway.tests.calling import Place
from headrace.gateway.tests.fleet import scripted_fleet
from headrace_dev.testing.upstream import ScriptedUpstream
from headrace_dev.testing.web import WebProcess

FAILURES = 3
STREAMED = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
FORMS: dict[str, dict[str, Any]] = {
    "500": {"status": 500},
    "501": {"status": 501},
    "502 of a proxy": {"status": 502, "body": "<html>Bad gateway</html>", "content_type": "text/html"},
    "504": {"status": 504},
    "403": {"status": 403},
    "404": {"status": 404},
    "429": {"status": 429, "retry_after": "30"},
    "503": {"status": 503, "retry_after": "30"},
    "an error event": {"error_event_after": 0},
    "an error event later": {"error_event_after": 2},
    "a broken connection": {"drop_after": 0},
    "a connection broken later": {"drop_after": 2, "headers_first": True},
    "a connection closed later": {"drop_after": 2, "headers_first": True, "drop": "close"},
    "no answer": {"no_answer": True},
    "a page": {"html": True},
    "nothing": {"raw": []},
    "no choices": {"choices_empty": "empty", "tokens": 0, "finish_reason": None},
    "no finish_reason": {"finish_reason": None},
    "a late first byte": {"headers_only": True},
    "a stall": {"stall_after": 2},
}


@pytest.fixture(scope="module")
def web(committed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebProcess]:
    process = WebProcess(tmp_path_factory.mktemp("web") / "web.log", HEADRACE_BREAKER_FAILURES=str(FAILURES))
    try:
        yield process.wait_ready()
    finally:
        process.stop()


@pytest.fixture(scope="module")
def fleet(committed: None) -> Iterator[list[ScriptedUpstream]]:
    with scripted_fleet(2) as fleet:
        yield fleet


def tenants(web: WebProcess, engine: ScriptedUpstream, urls: list[str]) -> tuple[Place, Place]:
    """Two tenants with a model of their own, in this order: one that fails, and another."""
    poor, other = Place(web, engine), Place(web, engine)
    timeouts: dict[str, Any] = {"first_byte_timeout": 0.2, "between_events_timeout": 0.3, "total_timeout": 2.0}
    model = other.add_route(urls, policy="round_robin", **timeouts)
    poor.world.model = other.world.model = model
    poor.wait_known(model)
    return poor, other


@STREAMED
@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("form", FORMS)
def test_one_tenant_s_failures_leave_the_engines_to_the_others(
    web: WebProcess, fleet: list[ScriptedUpstream], form: str, replicas: int, stream: bool
) -> None:
    engines = fleet[:replicas]
    poor, other = tenants(web, engines[0], [engine.url for engine in engines])
    for _ in engines:
        assert other.chat(stream=stream).status == 200
    fields = {"stream": stream, "max_tokens": 3 if form in {"a late first byte", "a stall"} else None}
    for number in range(2 * FAILURES):
        answer = poor.scripted(str(number), fields=fields, **FORMS[form])
        assert answer.status != 200 or "error" in answer.events[-1], form
        assert answer.status not in {429, 503} or form in {"429", "503"}
    answers = [other.chat(stream=stream) for _ in range(2 * replicas)]
    assert [(one.status, one.record["fallback"]) for one in answers] == [(200, 0)] * len(answers)


@STREAMED
@pytest.mark.parametrize("form", ["500", "an error event", "a broken connection", "a page", "nothing"])
def test_another_tenant_is_served_although_nobody_was_of_late(
    web: WebProcess, engine: ScriptedUpstream, form: str, stream: bool
) -> None:
    """A model that was silent for long: only the failing tenant's requests came."""
    engine.reset()
    poor, other = tenants(web, engine, [engine.url])
    for number in range(2 * FAILURES):
        assert poor.scripted(str(number), fields={"stream": stream}, **FORMS[form]).status >= 500
    assert other.chat(stream=stream).status == 200


@STREAMED
@pytest.mark.parametrize("form", ["500", "an error event", "a broken connection", "a page", "an error event later"])
def test_an_engine_that_fails_at_everybody_s_is_left_alone(
    web: WebProcess, engine: ScriptedUpstream, form: str, stream: bool
) -> None:
    engine.reset()
    poor, other = tenants(web, engine, [engine.url])
    assert other.chat(stream=stream).status == 200
    engine.script(**FORMS[form])
    asked = 0
    for number in range(FAILURES + 1):
        for each in (poor, other):
            asked += each.chat(f"{number}", stream=stream).status != 503
    assert asked <= 2 * FAILURES - 1
    engine.reset()


def test_one_tenant_s_good_requests_go_on_beside_its_bad_ones(web: WebProcess, engine: ScriptedUpstream) -> None:
    engine.reset()
    poor, other = tenants(web, engine, [engine.url])
    assert other.chat().status == 200
    for _ in range(3 * FAILURES):
        assert poor.scripted(status=500).status == 502
    assert (poor.chat().status, other.chat().status) == (200, 200)
