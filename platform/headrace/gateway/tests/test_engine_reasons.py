"""An engine's reason for refusing: told to the client, on record and in the log, without what is nobody's business."""

from typing import Any

import pytest

from headrace.gateway.tests.calling import Hosted, Place

STREAMED = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


@STREAMED
@pytest.mark.parametrize("status", [400, 422, 200])
def test_reason_reaches_client_record_and_log(place: Place, status: int, stream: bool) -> None:
    said = "guided_choice is limited to 3 entries, see /opt/engine/limits.py on 10.0.0.7"
    body = {"object": "error", "message": said, "code": 400, "type": "x"}
    answer = place.scripted(fields={"stream": stream}, status=status, body=body)
    assert (answer.status, answer.error["code"]) == (400, "invalid_request")
    told = answer.error["message"]
    assert "guided_choice is limited to 3 entries" in told
    assert "/opt" not in told
    assert "10.0" not in told
    reason = answer.record["labels"]["reason"]
    assert reason in told
    assert f"{answer.id}: {answer.record['replica']} says: {reason}" in place.web.log.read_text()


def test_reason_speaks_of_the_model_by_its_public_name(place: Place) -> None:
    answer = place.scripted(status=400, body={"message": "The model scripted has no such voice."})
    assert answer.error["message"].endswith(f"The model {place.world.model} has no such voice.")


def test_field_that_the_engine_names_is_named(place: Place) -> None:
    body = {"error": {"message": "It is too spicy.", "param": "temperature"}}
    assert place.scripted(status=400, body=body).error["param"] == "temperature"
    body = {"error": {"message": "It is too spicy.", "param": "internal_field"}}
    assert place.scripted(status=400, body=body).error["param"] is None


def test_reason_of_a_failure_is_on_record_and_not_told(place: Place) -> None:
    answer = place.scripted(status=500, body={"error": {"message": "CUDA out of memory on rank 3"}})
    assert (answer.status, answer.record["labels"]["reason"]) == (502, "CUDA out of memory on rank 3")
    assert "CUDA" not in answer.raw.decode()


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"top_logprobs": 3, "logprobs": False}, "top_logprobs"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": []}}}, "response_format"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "strin"}}}},
            "response_format",
        ),
        ({"logit_bias": {"word": 5}}, "logit_bias"),
        (
            {
                "tools": [{"type": "function", "function": {"name": "a"}}],
                "tool_choice": {"type": "function", "function": {"name": "b"}},
            },
            "tool_choice",
        ),
        (
            {"tools": [{"type": "function", "function": {"name": "a", "parameters": {"properties": []}}}]},
            "tools",
        ),
    ],
)
def test_what_every_engine_refuses_is_refused_here(place: Place, fields: dict[str, Any], param: str) -> None:
    place.upstream.reset()
    answer = place.chat(**fields)
    assert (answer.status, answer.error["code"], answer.error["param"]) == (400, "invalid_request", param)
    assert place.upstream.requests() == []


@STREAMED
def test_provider_that_refuses_a_field_of_ours_serves_without_it(place: Place, stream: bool) -> None:
    model = place.add_route(Hosted(place.upstream.url))
    refused, kept = ("stream_options", "max_completion_tokens") if stream else ("max_completion_tokens", "max_tokens")
    place.upstream.reset()
    place.upstream.scripts({"status": 400, "body": {"error": {"message": f"Unsupported parameter: '{refused}'."}}})
    answer = place.chat(model=model, stream=stream, max_tokens=7)
    assert (answer.status, answer.text, answer.record["fallback"]) == (200, "tok0 tok1 tok2 tok3 tok4 ", 0)
    bodies = [seen["body"] for seen in place.upstream.requests()]
    assert [refused in body for body in bodies] == [True, False]
    assert bodies[1][kept] == 7
    assert (answer.record["status"], answer.record["usage_source"]) == ("ok", "estimated" if stream else "reported")
    again = place.chat(model=model, stream=stream, max_tokens=7)
    assert (again.status, refused in place.upstream.requests()[-1]["body"]) == (200, False)
    assert len(place.upstream.requests()) == 3, "it is asked without it from now on"


@pytest.mark.parametrize("body", ["", {"detail": "Bad Request"}])
def test_provider_that_refuses_without_a_word_is_asked_once_more(place: Place, body: Any) -> None:
    model = place.add_route(Hosted(place.upstream.url))
    place.upstream.reset()
    place.upstream.scripts({"status": 400, "body": body})
    assert place.chat(model=model, stream=True).status == 200
    assert ["stream_options" in seen["body"] for seen in place.upstream.requests()] == [True, False]


def test_request_that_is_at_fault_itself_teaches_nothing(place: Place) -> None:
    model = place.add_route(Hosted(place.upstream.url))
    place.upstream.reset()
    refusal = {"status": 400, "body": {"error": {"message": "stream_options: unsupported, says my prompt"}}}
    place.upstream.scripts(refusal, refusal)
    assert place.chat(model=model, stream=True).status == 400
    assert place.chat(model=model, stream=True).status == 200
    sent = ["stream_options" in seen["body"] for seen in place.upstream.requests()]
    assert sent == [True, False, True], "asked once without it, in vain"
