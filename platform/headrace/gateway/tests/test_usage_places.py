"""Usage in whatever place, and on whichever event it is told: each figure once, and none that is of a time before."""

import json
from typing import Any

import pytest

from headrace.gateway.tests.calling import Answer, Place
from headrace_dev.testing.upstream import prompt

USAGE = {"prompt_tokens": 40, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 10}}
ZEROS = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
TOLD = (40, 10, 4, "reported")

BESIDE: list[dict[str, Any]] = [
    {"usage": USAGE},
    {"usage": json.dumps(USAGE)},
    {"usage": {"tokens": USAGE}},
    {"usage": ZEROS, "x_groq": {"usage": USAGE}},
    {"usage": ZEROS, "token_usage": USAGE},
    {"usage": {"prompt_tokens": 40, "completion_tokens": 0}, "usage_metadata": USAGE},
    {"usage": None, "meta_info": USAGE},
    {"metadata": {"usage": USAGE}},
    {"amazon-bedrock-invocationMetrics": {"inputTokenCount": 40, "outputTokenCount": 4, "cachedTokens": 10}},
    {"prompt_eval_count": 40, "eval_count": 4, "cached_tokens": 10},
]
IN_CHOICE: list[dict[str, Any]] = [{"usage": USAGE}, {"meta_info": USAGE}]


def event(text: str = "", reason: str | None = None, **beside: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": reason}], **beside}


def told(answer: Answer) -> tuple[int, int, int, str]:
    record = answer.record
    assert (answer.status, record["status"]) == (200, "ok"), answer.raw
    inputs, cached, outputs = (record[f"{name}_tokens"] for name in ("input", "cached_input", "output"))
    return inputs, cached, outputs, record["usage_source"]


@pytest.mark.parametrize("beside", BESIDE, ids=lambda beside: json.dumps(beside)[:60])
def test_usage_is_found_beside_the_choices(place: Place, beside: dict[str, Any]) -> None:
    words = [event("word ")] * 4
    assert told(place.events_from_upstream([*words, event("", "stop", **beside)], stream=True)) == TOLD
    alone = {"choices": [], **beside}
    assert told(place.events_from_upstream([*words, event("", "stop"), alone], stream=True)) == TOLD
    choices = [{"index": 0, "message": {"role": "assistant", "content": "word " * 4}, "finish_reason": "stop"}]
    assert told(place.scripted(status=200, body={"choices": choices, **beside})) == TOLD


@pytest.mark.parametrize("inside", IN_CHOICE, ids=lambda inside: json.dumps(inside)[:60])
@pytest.mark.parametrize("where", ["choice", "delta", "message"])
def test_usage_is_found_in_a_choice_and_what_it_says(place: Place, where: str, inside: dict[str, Any]) -> None:
    last = event("", "stop", usage=ZEROS)
    choice = last["choices"][0]
    if where == "choice":
        choice |= inside
    else:
        choice[where] = choice.get(where, {"role": "assistant", "content": ""}) | inside
    assert told(place.events_from_upstream([event("word ")] * 4 + [last], stream=True)) == TOLD


# By name: the usage on each of 40 events of one token, and what is billed of them.
STALE: dict[str, list[dict[str, Any] | None]] = {
    "first": [{"prompt_tokens": 40, "completion_tokens": 1}, *[None] * 39],
    "every tenth": [{"prompt_tokens": 40, "completion_tokens": n} if n % 10 == 5 else None for n in range(1, 41)],
    "each of its own": [{"prompt_tokens": 40, "completion_tokens": 1}] * 40,
}


@pytest.mark.parametrize("name", STALE)
@pytest.mark.parametrize("end", [True, False], ids=["ends", "breaks off"])
def test_usage_of_a_time_before_is_no_count_of_what_came_since(place: Place, name: str, end: bool) -> None:
    events = [event("word ") | ({"usage": usage} if usage else {}) for usage in STALE[name]]
    answer = place.events_from_upstream([*events, *([event("", "stop")] if end else [])], stream=True)
    record = answer.record
    assert (record["input_tokens"], record["output_tokens"]) == (40, 40)
    assert record["usage_source"] == "estimated"


@pytest.mark.parametrize("is_alone", [True, False])
def test_usage_that_only_begins_with_the_answer_is_counted_anew(place: Place, is_alone: bool) -> None:
    """As Anthropic's, which tells one token of output before there is any."""
    begin = {"choices": [], "usage": {"prompt_tokens": 40, "completion_tokens": 1}}
    last = [] if is_alone else [{"choices": [], "usage": {"completion_tokens": 41}}]
    answer = place.events_from_upstream([begin, *[event("word ")] * 40, event("", "stop"), *last], stream=True)
    expected = (50, "counted") if is_alone else (41, "reported")  # the tokenizer: 200 bytes
    assert (answer.record["output_tokens"], answer.record["usage_source"]) == expected


def test_usage_far_below_a_whole_answer_is_counted(place: Place) -> None:
    choices = [{"index": 0, "message": {"role": "assistant", "content": "word " * 40}, "finish_reason": "stop"}]
    usage = {"prompt_tokens": 40, "completion_tokens": 1}
    answer = place.chat(prompt(status=200, body={"choices": choices, "usage": usage}))
    assert (answer.record["output_tokens"], answer.record["usage_source"]) == (50, "counted")
