"""Whatever an engine generates is output: it starts the answer, is counted, bounded and billed."""

import base64
import json
from typing import Any

import pytest

from headrace.gateway.tests.calling import Answer, Place

OUTPUTS: list[dict[str, Any]] = [
    {"reasoning_details": [{"type": "reasoning.text", "text": "a few words", "index": 0}]},
    {"reasoning_details": [{"type": "reasoning.encrypted", "data": "gAAAAB"}]},
    {"reasoning": "a few words"},
    {"reasoning_content": "a few words"},
    {"thinking": "a few words"},
    {"thinking_blocks": [{"type": "thinking", "thinking": "a few words"}]},
    {"audio": {"id": "audio_1", "data": "UklGRg=="}},
    {"audio": {"transcript": "a few words"}},
    {"function_call": {"name": "f", "arguments": "a few words"}},
    {"refusal": "a few words"},
    {"images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBOR"}}]},
    {"of_next_year": {"text": "a few words"}},
]
NO_OUTPUTS: list[dict[str, Any]] = [
    {"role": "assistant"},
    {"role": "assistant", "content": "", "reasoning_content": None, "tool_calls": []},
    {"content": ""},
    {"audio": {"id": "audio_1", "expires_at": 7}},
    {"reasoning_details": []},
    {"thinking": None, "images": []},
    {},
]


def event(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def stream(place: Place, events: list[dict[str, Any]], *, end: bool = True, **fields: Any) -> Answer:
    last = [event({}, "stop")] if end else []
    return place.events_from_upstream([*events, *last], stream=True, **fields)


@pytest.mark.parametrize("delta", OUTPUTS, ids=lambda delta: json.dumps(delta)[:50])
def test_any_output_starts_the_answer_and_is_counted(place: Place, delta: dict[str, Any]) -> None:
    """After the first byte an answer that breaks off is billed, and told as an error event of a 200."""
    broken = stream(place, [event(delta)] * 20, end=False)
    assert broken.status == 200, broken.raw
    assert broken.record["status"] == "incomplete"
    assert broken.record["output_tokens"] >= 20
    assert stream(place, [event(delta)] * 20).record["output_tokens"] >= 20


@pytest.mark.parametrize(
    "beside", [{"text": "a few words"}, {"reasoning_content": "a few words", "delta": {}}], ids=str
)
def test_output_beside_a_delta_is_counted_too(place: Place, beside: dict[str, Any]) -> None:
    events = [{"choices": [{"index": 0, "finish_reason": None} | beside]}] * 20
    broken = stream(place, events, end=False)
    assert (broken.status, broken.record["status"]) == (200, "incomplete"), broken.raw
    assert broken.record["output_tokens"] >= 20


@pytest.mark.parametrize("delta", NO_OUTPUTS, ids=lambda delta: json.dumps(delta)[:50])
def test_words_about_output_are_none(place: Place, delta: dict[str, Any]) -> None:
    nothing = stream(place, [event(delta)] * 3, end=False)
    assert nothing.status == 502, nothing.raw
    assert nothing.record["output_tokens"] == 0


@pytest.mark.parametrize("delta", [OUTPUTS[0], OUTPUTS[4], OUTPUTS[6]], ids=lambda delta: json.dumps(delta)[:50])
def test_output_without_end_is_cut(place: Place, delta: dict[str, Any]) -> None:
    events = [f"data: {json.dumps(event(delta))}\n\n" * 3000]
    raw = [base64.b64encode(each.encode()).decode() for each in events]
    place.upstream.scripts({"raw": raw})
    answer = place.chat(stream=True, max_tokens=5)
    assert answer.error["code"] == "upstream_error"
    assert len(answer.events) < 400
    assert answer.record["output_tokens"] == 5


def test_whole_answer_of_output_that_is_no_text_is_counted(place: Place) -> None:
    message = {"role": "assistant", "content": None, "thinking": "word " * 20}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    assert place.scripted(status=200, body=body).record["output_tokens"] >= 20


USAGE = {"prompt_tokens": 40, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 10}}


@pytest.mark.parametrize(
    "beside", [{"x_groq": {"id": "r", "usage": USAGE}}, {"usageMetadata": USAGE}, {"usage": USAGE}], ids=json.dumps
)
@pytest.mark.parametrize("is_stream", [True, False])
def test_usage_is_found_in_vendors_fields(place: Place, beside: dict[str, Any], is_stream: bool) -> None:
    if is_stream:
        answer = stream(place, [event({"content": "x"}), event({}, "stop") | beside], end=False)
    else:
        message = {"role": "assistant", "content": "x"}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        answer = place.scripted(status=200, body={"choices": choices} | beside)
    told = [answer.record[f"{name}_tokens"] for name in ("input", "cached_input", "output")]
    assert (told, answer.record["usage_source"]) == ([40, 10, 7], "reported")


def test_usage_is_found_in_a_choice(place: Place) -> None:
    last = event({}, "stop")
    last["choices"][0]["usage"] = USAGE
    record = stream(place, [event({"content": "x"}), last], end=False).record
    assert (record["input_tokens"], record["output_tokens"], record["usage_source"]) == (40, 7, "reported")
