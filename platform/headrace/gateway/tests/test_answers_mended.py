"""What upstreams send that strict clients cannot take, and nearly is what they could: mended, counted, passed on."""

import base64
import json
from typing import Any

import pytest

from headrace.gateway.tests.calling import Answer, Place

DONE = "data: [DONE]\n\n"
USAGE = {"prompt_tokens": 30, "completion_tokens": 4}


def event(delta: dict[str, Any], reason: str | None = None, **fields: Any) -> str:
    return (
        "data: " + json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}], **fields}) + "\n\n"
    )


END = event({}, "stop")


def stream(place: Place, *segments: str) -> Answer:
    raw = [base64.b64encode(segment.encode()).decode() for segment in segments]
    answer = place.scripted(fields={"stream": True}, raw=raw)
    assert answer.status == 200, answer.raw
    assert answer.is_done, answer.raw
    assert answer.record["status"] == "ok"
    return answer


def whole(place: Place, body: str) -> Answer:
    answer = place.scripted(status=200, body=body, content_type="application/json")
    assert answer.status == 200, answer.raw
    return answer


def calls(answer: Answer) -> list[dict[str, Any]]:
    deltas = [choice["delta"] for event in answer.events for choice in event["choices"]]
    return [call for delta in deltas for call in delta.get("tool_calls") or ()]


def test_it_takes_half_a_character_for_one_that_is_missing(place: Place) -> None:
    """Upstreams that cut text by UTF-16 units send each half of an emoji as an escape of its own."""
    half = 'data: {"choices":[{"index":0,"delta":{"content":"a\\ud83d"}}]}\n\n'
    assert stream(place, half, event({"content": "😀"}), END, DONE).text == "a\ufffd😀"
    body = '{"choices":[{"index":0,"message":{"role":"assistant","content":"\\udc00b"},"finish_reason":"stop"}]}'
    assert whole(place, body).text == "\ufffdb"


def test_it_sends_openai_s_least_logprob_for_what_is_no_number(place: Place) -> None:
    """Python's writer says NaN and Infinity, which no other reader takes: in logprobs, of what cannot come."""
    told = '{"content":[{"token":"a","logprob":-Infinity,"top_logprobs":[{"token":"b","logprob":NaN}]}]}'
    answer = stream(
        place, 'data: {"choices":[{"index":0,"delta":{"content":"a"},"logprobs":' + told + "}]}\n\n", END, DONE
    )
    [token] = answer.events[0]["choices"][0]["logprobs"]["content"]
    assert (token["logprob"], token["top_logprobs"][0]["logprob"]) == (-9999.0, -9999.0)


def test_it_numbers_the_calls_of_a_stream_that_does_not(place: Place) -> None:
    """Each call whole and without a number, or in pieces of which only the first names the call."""
    pieces = [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":'}},
        {"function": {"arguments": "1}"}},
        {"id": "b", "index": None, "type": "function", "function": {"name": "g", "arguments": "{}"}},
    ]
    answer = stream(place, *(event({"tool_calls": [piece]}) for piece in pieces), event({}, "tool_calls"), DONE)
    assert [call["index"] for call in calls(answer)] == [0, 0, 1]
    together = stream(place, event({"tool_calls": [pieces[0], pieces[2]]}), event({}, "tool_calls"), DONE)
    assert [call["index"] for call in calls(together)] == [0, 1]


def test_it_gives_arguments_as_text(place: Place) -> None:
    call = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": {"city": "東京"}}}
    answer = stream(place, event({"tool_calls": [call]}), event({}, "tool_calls"), DONE)
    assert json.loads(calls(answer)[0]["function"]["arguments"]) == {"city": "東京"}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    given = whole(place, json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}))
    [given_call] = given.json["choices"][0]["message"]["tool_calls"]
    assert json.loads(given_call["function"]["arguments"]) == {"city": "東京"}


def test_it_ends_at_done_whatever_follows_it_on_its_line(place: Place) -> None:
    stream(place, event({"content": "x"}), END, "data: [DONE] \n\n", "data: {\n\n")


@pytest.mark.parametrize("nothing", [None, "", False, {}, []])
def test_it_takes_no_error_that_says_nothing_for_one(place: Place, nothing: Any) -> None:
    assert stream(place, event({"content": "x"}, error=nothing), END, DONE).text == "x"


def test_it_gives_content_that_comes_in_parts_as_text(place: Place) -> None:
    """As a provider of reasoning models sends what they think; it is output like any other."""
    parts: list[Any] = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm, so it is"}]}]
    answer = stream(place, event({"content": parts}), event({"content": "x"}), END, DONE)
    first = answer.events[0]["choices"][0]["delta"]
    assert (first["reasoning_content"], first["content"]) == ("hm, so it is", None)
    assert answer.record["output_tokens"] > 1
    parts += [{"type": "text", "text": "To"}, "day", {"type": "refusal", "refusal": "No."}]
    body = {"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]}
    [choice] = whole(place, json.dumps(body)).json["choices"]
    told = {"role": "assistant", "content": "Today", "reasoning_content": "hm, so it is", "refusal": "No."}
    assert choice["message"] == told


def test_it_takes_the_type_of_a_stream_however_it_is_written(place: Place) -> None:
    answer = place.scripted(fields={"stream": True}, tokens=2, content_type="Text/Event-Stream; charset=UTF-8")
    assert (answer.status, answer.is_done) == (200, True)


def test_it_counts_reasoning_under_any_name_and_beside_content(place: Place) -> None:
    """Counted by the engine's tokenizer (four bytes a token in the script), since nothing is reported."""
    text = "thinking about it"
    ways = [{"reasoning": text}, {"reasoning_content": text}, {"reasoning": text, "reasoning_content": text}]
    told = [stream(place, event(way), END, DONE).record["output_tokens"] for way in ways]
    assert len(set(told)) == 1
    assert told[0] > 1
    more = stream(place, event({"content": "and a word beside it", "reasoning": text}), END, DONE)
    assert more.record["output_tokens"] > told[0]
    for way in ways:
        message = {"role": "assistant", "content": None, **way}
        answer = whole(place, json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}))
        assert answer.record["output_tokens"] == told[0]


def test_it_takes_an_answer_that_ends_in_an_error_for_a_failure(place: Place) -> None:
    raw = [base64.b64encode(s.encode()).decode() for s in (event({"content": "x"}), event({}, "error"), DONE)]
    answer = place.scripted(fields={"stream": True}, raw=raw)
    assert answer.error["code"] == "upstream_error"
    assert not answer.is_done
    assert answer.record["status"] == "error"
    message = {"role": "assistant", "content": "x"}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "error"}], "usage": USAGE}
    failed = place.scripted(status=200, body=json.dumps(body), content_type="application/json")
    assert (failed.status, failed.record["output_tokens"]) == (502, 0)


GAPS: list[dict[str, Any]] = [
    {"index": 0, "delta": {"content": "x"}},
    {"index": 0, "delta": {"content": "x"}, "finish_reason": ""},
    {"delta": {"content": "x"}, "finish_reason": None},
]


@pytest.mark.parametrize("last", [{"index": 0}, {"index": 0, "delta": None}, {}])
@pytest.mark.parametrize("choice", GAPS)
def test_it_fills_what_clients_want_to_find_in_every_choice(
    place: Place, choice: dict[str, Any], last: dict[str, Any]
) -> None:
    """As Azure's filters, Google, Anthropic and older SGLang send them."""
    ways = [{"choices": [choice]}, {"choices": [last | {"finish_reason": "stop"}]}]
    answer = stream(place, *(f"data: {json.dumps(each)}\n\n" for each in ways), DONE)
    given = [event["choices"] for event in answer.events]
    assert given == [
        [{"index": 0, "delta": {"role": "assistant", "content": "x"}, "finish_reason": None}],
        [{"index": 0, "delta": {}, "finish_reason": "stop"}],
    ]


def test_it_keeps_what_google_s_models_sign_their_calls_with(place: Place) -> None:
    signed = {"google": {"thought_signature": "c2ln" * 500}}
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": signed}
    answer = stream(place, event({"tool_calls": [call]}), event({}, "tool_calls"), DONE)
    assert [(each["index"], each["extra_content"]) for each in calls(answer)] == [(0, signed)]


def test_it_writes_no_line_end_of_unicode_s_into_a_line(place: Place) -> None:
    """Python's splitlines() parts lines there, and with it httpx' and many clients' reading of a stream."""
    text = "a\u2028b\u2029c\x85d \u2019\u2026"
    raw = 'data: {"choices":[{"index":0,"delta":{"content":"' + text + '"},"finish_reason":null}]}\n\n'
    answer = stream(place, raw, END, DONE)
    assert answer.text == text
    lines = answer.raw.decode().splitlines()
    assert all(line.startswith("data: ") for line in lines if line)


def test_it_streams_a_message_that_comes_in_place_of_a_delta(place: Place) -> None:
    """Who only plays at streaming sends all in one event. What follows deltas only repeats them."""
    message = {"role": "assistant", "content": "a whole answer of some words"}
    whole_one = {"index": 0, "message": message, "finish_reason": "stop"}
    answer = stream(place, f"data: {json.dumps({'choices': [whole_one]})}\n\n", DONE)
    assert answer.events[0]["choices"] == [{"index": 0, "delta": message, "finish_reason": "stop"}]
    assert answer.record["output_tokens"] > 1
    again = stream(place, event({"content": "a"}), f"data: {json.dumps({'choices': [whole_one]})}\n\n", DONE)
    assert again.text == "a"
    assert again.record["output_tokens"] == 1


@pytest.mark.parametrize("odd", [{"reasoning": {"text": "hm"}}, {"reasoning_content": ["hm"]}])
def test_it_counts_text_of_an_odd_form(place: Place, odd: dict[str, Any]) -> None:
    answer = stream(place, event(odd), event({"content": "x", "refusal": False}), END, DONE)
    assert answer.events[0]["choices"][0]["delta"] == {"role": "assistant", next(iter(odd)): "hm"}
    message = {"role": "assistant", "content": None, **odd}
    given = whole(place, json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}))
    assert given.record["output_tokens"] >= 1


def test_it_fills_what_clients_want_to_find_in_a_whole_answer(place: Place) -> None:
    choices = [{"message": {"content": "x"}, "finish_reason": "stop"}]
    assert whole(place, json.dumps({"choices": choices})).json["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "x", "refusal": None},
            "finish_reason": "stop",
            "logprobs": None,
        }
    ]
    bare = whole(place, json.dumps({"choices": [{"message": {}, "finish_reason": "stop"}], "usage": USAGE}))
    assert bare.json["choices"][0]["message"] == {"role": "assistant", "content": None, "refusal": None}
