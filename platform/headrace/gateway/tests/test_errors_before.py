"""An upstream that fails before the first byte: the client gets a status of its own, and nothing is billed."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from headrace.gateway.tests.calling import Answer, Place
from headrace_dev.testing.upstream import ScriptedUpstream

# What no client and no log may ever see of an upstream.
SECRETS = "/usr/lib/python3/site-packages/sglang/srt/engine.py sk-upstream-secret http://10.0.0.7:30000/v1"


def raw(*segments: str) -> list[str]:
    return [base64.b64encode(segment.encode()).decode() for segment in segments]


def told(message: str, code: Any = 400) -> dict[str, Any]:
    return {"object": "error", "message": f"{message} {SECRETS}", "type": "BadRequest", "param": None, "code": code}


# name -> (script, status, code)
FAILURES: dict[str, tuple[dict[str, Any], int, str]] = {
    "a full queue": ({"queue_full": True}, 503, "no_capacity"),
    "a failure at once": ({"error_event_after": 0, "role_chunk": False}, 502, "upstream_error"),
    "a failure after the role": ({"error_event_after": 0}, 502, "upstream_error"),
    "a page": ({"html": True}, 502, "upstream_error"),
    "a large page": ({"html": True, "pad": 200_000}, 502, "upstream_error"),
    "an error in a 200": ({"status": 200, "body": told("Not an answer.", 500)}, 502, "upstream_error"),
    "a refused request in a 200": ({"status": 200, "body": told("Invalid image.")}, 400, "invalid_request"),
    "a long prompt in a 200": (
        {"status": 200, "body": {"error": {"code": 400, "message": "The maximum context length is 8192 tokens."}}},
        400,
        "context_length_exceeded",
    ),
    "a rate limit in a 200": ({"status": 200, "body": {"error": told("Slow down.", 429)}}, 503, "no_capacity"),
    "text in a 200": ({"status": 200, "body": SECRETS}, 502, "upstream_error"),
    "only the end": ({"raw": raw("data: [DONE]\n\n")}, 502, "upstream_error"),
    "nothing": ({"raw": []}, 502, "upstream_error"),
    "an event that is no object": ({"raw": raw('data: ["x"]\n\n')}, 502, "upstream_error"),
    "an event that is no JSON": ({"raw": raw(f"data: {SECRETS}\n\n")}, 502, "upstream_error"),
    "an event nested without end": ({"raw": raw('data: {"choices":' + "[" * 60_000)}, 502, "upstream_error"),
    "an answer nested without end": ({"status": 200, "body": '{"choices":' + "[" * 60_000}, 502, "upstream_error"),
    "choices that are none": ({"raw": raw('data: {"choices":[7]}\n\n')}, 502, "upstream_error"),
    "a refused request": ({"status": 400, "body": told("Invalid image.")}, 400, "invalid_request"),
    "a long prompt": (
        {"status": 400, "body": told("The input is longer than the model's context length (8192 tokens).")},
        400,
        "context_length_exceeded",
    ),
    "a long prompt at llama.cpp": (
        {"status": 400, "body": {"error": told("too large") | {"type": "exceed_context_size_error"}}},
        400,
        "context_length_exceeded",
    ),
    "a long prompt and a long text of it": (
        {"status": 400, "body": told("This model's maximum context length is 8192 tokens. " + "x" * 200_000)},
        400,
        "context_length_exceeded",
    ),
    "a long prompt that vLLM calls a failure of its own": (
        {"status": 500, "body": {"error": told("Input length 65537 exceeds the maximum context length 65536.", 500)}},
        400,
        "context_length_exceeded",
    ),
    "no credit": ({"status": 400, "body": told("Your credit balance is too low.")}, 502, "upstream_error"),
    "a request that speaks of bills": (
        {"status": 400, "body": told("No such tool: billing_of.")},
        400,
        "invalid_request",
    ),
    "refused credentials": ({"status": 401, "body": {"error": "Unauthorized", "key": SECRETS}}, 502, "upstream_error"),
    "payment required": ({"status": 402}, 502, "upstream_error"),
    "forbidden": ({"status": 403}, 502, "upstream_error"),
    "no such path": ({"status": 404, "body": {"detail": "Not Found"}}, 502, "upstream_error"),
    "an invalid field": ({"status": 422, "body": {"detail": SECRETS}}, 400, "invalid_request"),
    "a rate limit": ({"status": 429, "retry_after": "7", "body": told("Slow down.", 429)}, 503, "no_capacity"),
    "a failure": ({"status": 500, "body": SECRETS}, 502, "upstream_error"),
    "a bad gateway": ({"status": 502, "html": True}, 502, "upstream_error"),
    "no room": ({"status": 503}, 503, "no_capacity"),
    "a redirect": ({"status": 307, "headers": {"location": "http://10.0.0.7/"}}, 502, "upstream_error"),
    "no content": ({"status": 204, "body": ""}, 502, "upstream_error"),
}


@pytest.fixture(scope="module", autouse=True)
def nothing_of_it_in_the_log(place: Place) -> Iterator[None]:
    yield
    log = place.web.log.read_text()
    for secret in SECRETS.split():
        assert secret not in log


def check(place: Place, answer: Answer, status: int, code: str) -> None:
    assert (answer.status, answer.error["code"]) == (status, code), answer.raw
    assert answer.headers["content-type"] == "application/json"
    said = answer.raw.decode() + str(answer.headers)
    assert not any(secret in said for secret in [*SECRETS.split(), str(place.upstream.port), place.world.name]), said
    record = answer.record
    assert (record["status"], record["finish_reason"]) == ("error", None)
    assert (record["input_tokens"], record["output_tokens"], record["cached_input_tokens"]) == (0, 0, 0)
    assert record["ttft_ms"] is None


@pytest.mark.parametrize("name", FAILURES)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_it_answers_with_a_status_and_bills_nothing(
    place: Place, engine: ScriptedUpstream, name: str, stream: bool
) -> None:
    script, status, code = FAILURES[name]
    engine.reset()
    answer = place.scripted(fields={"stream": stream}, **script)
    check(place, answer, status, code)
    engine.wait_until_idle()
    assert len(engine.requests()) == 1, "one attempt reached the upstream"


def test_it_says_when_a_busy_upstream_may_be_asked_again(place: Place) -> None:
    answers = [
        place.scripted(status=status, retry_after=wait) for status in (429, 503) for wait in ("7", "900", "soon")
    ]
    assert [answer.headers["retry-after"] for answer in answers] == ["7", "60", "1"] * 2


def test_it_tells_the_code_of_an_error_event_whatever_its_form(place: Place) -> None:
    """The queue's own form, SGLang's without a wrapper, codes as text."""
    full = {"error": told("The request queue is full.", 503)}
    forms: list[tuple[dict[str, Any], int]] = [
        (full, 503),
        (told("The request queue is full.", 503), 503),
        ({"error": told("Rate limited.", "429")}, 503),
        ({"error": told("longer than the model's context length", 400)}, 400),
        ({"error": "it broke"}, 502),
        ({"error": {}}, 502),
    ]
    for form, status in forms:
        answer = place.scripted(fields={"stream": True}, raw=raw(f"data: {json.dumps(form)}\n\n", "data: [DONE]\n\n"))
        assert answer.status == status, (form, answer.raw)
