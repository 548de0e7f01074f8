"""An upstream that fails after the first byte: an error event, no [DONE], and what was delivered is billed."""

import base64
import json
import time
from typing import Any

import pytest

from headrace.gateway.tests.calling import Answer, Place
from headrace_dev.testing.upstream import ScriptedUpstream

USAGE = {"prompt_tokens": 9, "completion_tokens": 1}


def chunk(content: str | None = None, finish_reason: str | None = None, **more: Any) -> str:
    choice = {"index": 0, "delta": {} if content is None else {"content": content}, "finish_reason": finish_reason}
    return f"data: {json.dumps({'object': 'chat.completion.chunk', 'choices': [choice], **more})}\n\n"


def raw(*segments: str) -> list[str]:
    return [base64.b64encode(segment.encode()).decode() for segment in segments]


def failed(answer: Answer, code: str, *, tokens: int, status: str = "error", word: str | None = None) -> None:
    assert answer.status == 200
    assert not answer.is_done
    assert b"[DONE]" not in answer.raw
    assert answer.error["code"] == code
    assert answer.text == "".join(f"tok{token} " for token in range(tokens))
    assert not any(choice["finish_reason"] for event in answer.events for choice in event.get("choices", ()))
    record = answer.record
    assert (record["status"], record["output_tokens"], record["finish_reason"]) == (status, tokens, word)
    assert record["input_tokens"] > 0


@pytest.mark.parametrize("tokens", [1, 5])
@pytest.mark.parametrize(
    ("script", "code"),
    [
        ({"error_event_after": None}, "upstream_error"),
        ({"error_event_after": None, "done": False}, "upstream_error"),
        ({"error_event_after": None, "split_every": 1}, "upstream_error"),
        ({"drop_after": None}, "upstream_disconnected"),
        ({"drop_after": None, "drop": "close"}, "upstream_disconnected"),
    ],
    ids=["error event", "error event, no end", "error event in bytes", "reset", "closed"],
)
def test_it_ends_with_an_error_event_and_bills_what_came(
    place: Place, engine: ScriptedUpstream, script: dict[str, Any], code: str, tokens: int
) -> None:
    script = {name: tokens if value is None else value for name, value in script.items()}
    answer = place.scripted(fields={"stream": True}, tokens=20, **script)
    failed(answer, code, tokens=tokens)
    engine.wait_until_idle()


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("end_newline", [True, False])
@pytest.mark.parametrize("reason", [None, ""])
def test_it_invents_no_finish_reason(place: Place, done: bool, end_newline: bool, reason: str | None) -> None:
    fields = {"stream": True, "stream_options": {"include_usage": True}}
    answer = place.scripted(fields=fields, tokens=4, finish_reason=reason, done=done, end_newline=end_newline)
    failed(answer, "upstream_disconnected", tokens=4, status="incomplete")
    assert answer.usage is None


@pytest.mark.parametrize("reason", [None, ""])
def test_it_takes_no_whole_answer_without_a_finish_reason(place: Place, reason: str | None) -> None:
    answer = place.scripted(tokens=4, finish_reason=reason)
    assert (answer.status, answer.error["code"]) == (502, "upstream_disconnected")
    record = answer.record
    assert (record["status"], record["input_tokens"], record["output_tokens"]) == ("incomplete", 0, 0)


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("script", [{"drop_after": 5}, {"drop_after": 5, "drop": "close"}, {"error_event_after": 5}])
def test_whole_answer_of_an_engine_that_dies_costs_nothing(place: Place, script: dict[str, Any], n: int) -> None:
    answer = place.scripted(fields={"n": n}, tokens=20, **script)
    assert answer.status == 502, answer.raw
    record = answer.record
    assert (record["status"], record["input_tokens"], record["output_tokens"]) == ("error", 0, 0)


def test_it_wants_the_finish_reason_of_every_choice(place: Place) -> None:
    segments = [chunk("one"), chunk(finish_reason="stop"), "data: [DONE]\n\n"]
    whole = place.scripted(fields={"stream": True}, raw=raw(*segments))
    assert whole.is_done
    answer = place.scripted(fields={"stream": True, "n": 2}, raw=raw(*segments))
    assert answer.error["code"] == "upstream_disconnected"
    assert answer.record["status"] == "incomplete"


@pytest.mark.parametrize("reason", ["stop", "length", "content_filter", "tool_calls"])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_it_passes_the_finish_reason_as_it_is(place: Place, reason: str, stream: bool) -> None:
    answer = place.scripted(fields={"stream": stream}, tokens=3, finish_reason=reason)
    choices = [event["choices"] for event in answer.events] if stream else [answer.json["choices"]]
    assert [choice["finish_reason"] for [choice] in choices if choice["finish_reason"]] == [reason]
    assert (answer.record["finish_reason"], answer.record["status"]) == (reason, "ok")


def test_it_closes_at_once_after_an_error_event(place: Place, engine: ScriptedUpstream) -> None:
    began = time.monotonic()
    answer = place.scripted(fields={"stream": True}, tokens=20, error_event_after=3, done=False, linger_ms=20_000)
    failed(answer, "upstream_error", tokens=3)
    assert time.monotonic() - began < 5
    engine.wait_until_idle()


@pytest.mark.parametrize(
    "line",
    [": PROCESSING", "data: : keepalive", "data:", "data", ":", "event: ping", "retry: 100", 'data: {"choices":[]}'],
)
def test_it_passes_over_what_keeps_connections_alive(place: Place, line: str) -> None:
    answer = place.scripted(fields={"stream": True}, tokens=4, junk=[line] * 5, junk_every=2)
    assert (answer.text, answer.is_done) == ("tok0 tok1 tok2 tok3 ", True)
    assert len(answer.events) == 6  # the role, four texts, the end
    assert answer.record["output_tokens"] == 4


@pytest.mark.parametrize(
    "nonsense",
    ["data: {\n\n", "data: 7\n\n", 'data: {"choices":7}\n\n', 'data: {"choices":[{"delta":{"content":7}}]}\n\n'],
)
def test_it_ends_at_an_event_that_is_none(place: Place, nonsense: str) -> None:
    answer = place.scripted(
        fields={"stream": True}, raw=raw(chunk("tok0 ", usage=USAGE), nonsense, chunk("never"), "data: [DONE]\n\n")
    )
    failed(answer, "upstream_error", tokens=1)


def test_it_takes_another_s_abort_of_an_attempt_for_a_failure(place: Place) -> None:
    """`abort` is no reason that OpenAI knows; an answer cut like that is not whole."""
    answer = place.scripted(fields={"stream": True}, tokens=3, finish_reason="abort")
    failed(answer, "upstream_error", tokens=3, word="abort")
    whole = place.scripted(tokens=3, finish_reason="abort")
    assert (whole.status, whole.error["code"]) == (502, "upstream_error")
    assert (whole.record["status"], whole.record["output_tokens"]) == ("error", 0)


@pytest.mark.parametrize("reason", ["x" * 2000, "a\u0000b"])
def test_it_keeps_a_finish_reason_that_no_ledger_takes_out_of_the_record(place: Place, reason: str) -> None:
    answer = place.scripted(fields={"stream": True}, tokens=1, finish_reason=reason)
    recorded = answer.record["finish_reason"]
    assert recorded is None or (len(recorded) <= 64 and recorded.isprintable())
    assert answer.record["output_tokens"] == 1
