"""What says nothing, in whatever form an engine writes it, takes nothing from the answer around it."""

import base64
import json
from typing import Any

import pytest

from headrace.gateway.tests.calling import Answer, Place
from headrace.gateway.tests.sdk_schemas import check_completion, check_stream

USAGE = {"prompt_tokens": 9, "completion_tokens": 2}
TOOLS = [{"type": "function", "function": {"name": name}} for name in ("weather", "time")]


def said(delta: Any, reason: str | None = None) -> str:
    return json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})


def send(place: Place, *events: str, **fields: Any) -> Answer:
    raw = [base64.b64encode(f"data: {event}\n\n".encode()).decode() for event in events]
    return place.scripted(fields=fields, raw=raw)


@pytest.fixture(scope="module")
def assembled(place: Place) -> str:
    """A model whose whole answers are put together from a stream."""
    name = place.add_model(url=f"{place.upstream.url}/", engine="llamacpp")
    place.wait_known(name)
    return name


EMPTY_CHOICES: list[Any] = [{}, "", False, [None], [{}, None], [[]], [""]]
EMPTY = [
    "null", "[]", "{}", '""', "[{}]",
    *(json.dumps({"choices": choices}) for choices in EMPTY_CHOICES),
]  # fmt: skip


@pytest.mark.parametrize("empty", EMPTY)
def test_it_passes_over_an_event_that_says_nothing(place: Place, assembled: str, empty: str) -> None:
    value = json.loads(empty)
    usage = json.dumps({"choices": value["choices"] if isinstance(value, dict) and value else value, "usage": USAGE})
    events = [empty, said({"content": "a"}), empty, said({"content": "b"}), said({}, "stop"), empty, usage, "[DONE]"]
    answer = send(place, *events, stream=True)
    assert answer.is_done, answer.raw
    assert check_stream(answer.events).choices[0].message.content == "ab"
    whole = send(place, *events, model=assembled)
    assert whole.status == 200, whole.raw
    assert check_completion(whole.raw).choices[0].message.content == "ab"


def test_it_ends_at_done_in_quotes(place: Place) -> None:
    answer = send(place, said({"content": "a"}, "stop"), '"[DONE]"', "{", stream=True)
    assert (answer.is_done, answer.text) == (True, "a")


@pytest.mark.parametrize(
    "choice", [{"delta": "bbbb"}, {"text": "bbbb"}, {"delta": {}, "text": "bbbb"}, {"delta": {"text": "bbbb"}}]
)
def test_it_loses_no_text_that_is_in_another_place(place: Place, assembled: str, choice: dict[str, Any]) -> None:
    odd = json.dumps({"choices": [{"index": 0, "finish_reason": None, **choice}]})
    events = [said({"role": "assistant", "content": "aaaa"}), odd, said({}, "stop"), "[DONE]"]
    answer = send(place, *events, stream=True)
    assert (answer.is_done, answer.text, answer.record["output_tokens"]) == (True, "aaaabbbb", 2)
    assert send(place, *events, model=assembled).text == "aaaabbbb"
    if "delta" in choice:
        choice["message"] = choice.pop("delta")
    body = json.dumps({"choices": [{**choice, "finish_reason": "stop"}]})
    assert place.scripted(status=200, body=body, content_type="application/json").text == "bbbb"


@pytest.mark.parametrize("message", [{}, {"message": None}, {"message": ""}, {"message": []}, {"delta": {}}], ids=str)
def test_it_takes_an_end_without_a_message_for_an_empty_answer(place: Place, message: dict[str, Any]) -> None:
    """As Google's endpoints answer where a filter, or thoughts alone, took all that there was."""
    for reason in ("length", "content_filter"):
        body = json.dumps({"choices": [{"finish_reason": reason, **message}], "usage": USAGE})
        answer = place.scripted(status=200, body=body, content_type="application/json")
        [choice] = check_completion(answer.raw).choices
        assert (choice.message.content, choice.finish_reason) == (None, reason)


def call(index: Any = None, call_id: Any = None, name: Any = None, arguments: Any = None) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {"index": index, "id": call_id, "function": function}


CALLS: dict[str, list[dict[str, Any]]] = {
    "numbered later": [call(None, "a", "weather", ""), call(0, None, None, "{"), call(0, None, None, "}")],
    "numbered anew": [call(1, "a", "weather", ""), call(0, None, None, "{"), call(0, None, None, "}")],
    "numbers as text": [call("0", "a", "weather", ""), call("0", None, None, "{"), call("0", None, None, "}")],
    "a number below zero": [call(-1, "a", "weather", "{"), call(0, None, None, "}")],
    "a piece without anything": [call(), call(0, "a", "weather", "{"), call(0, None, None, "}")],
    "an id that comes to nothing": [call(3, "x"), call(0, "a", "weather", "{"), call(0, None, None, "}")],
}


@pytest.mark.parametrize("name", CALLS)
def test_it_puts_a_call_together_whatever_its_pieces_are_numbered(place: Place, assembled: str, name: str) -> None:
    ends = [said({"tool_calls": [call(7, "b", "time", "{}")]}), said({}, "tool_calls"), "[DONE]"]
    events = [*(said({"tool_calls": [piece]}) for piece in CALLS[name]), *ends]
    for final in (
        check_stream(send(place, *events, stream=True, tools=TOOLS).events),
        check_completion(send(place, *events, model=assembled, tools=TOOLS).raw),
    ):
        calls: list[Any] = list(final.choices[0].message.tool_calls or ())
        assert [(each.function.name, each.function.arguments) for each in calls] == [("weather", "{}"), ("time", "{}")]


def test_it_drops_a_tier_that_is_a_number(place: Place) -> None:
    body = json.dumps({"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], "service_tier": -1})
    answer = place.scripted(status=200, body=body, content_type="application/json")
    assert "service_tier" not in check_completion(answer.raw).model_fields_set
