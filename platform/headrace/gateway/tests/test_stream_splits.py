"""However the network cuts an upstream's stream, the client's events and the record are the same."""

import base64
import random
import re
from typing import Any

import pytest

from headrace.gateway.tests.calling import Answer, Place

TEXTS = ["Hello", " 你好", "🌍", " é", "\u2028", '"quoted\\"', " {}\n\n", "data: "]
ARGUMENTS = ['{"città":', ' "東京🗼', 'é\\n"}']
SCRIPT: dict[str, Any] = {
    "text": TEXTS,
    "tool_calls": [{"name": "weather", "arguments": ARGUMENTS}],
    "reasoning": 2,
    "junk": [": ping"],
    "junk_every": 3,
    "prompt_tokens": 30,
    "cached_tokens": 7,
}
FIELDS: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}, "max_tokens": 50}
# What differs from one request to the next in any case.
OWN = ("request_id", "admitted_at", "finished_at", "ttft_ms", "tpot_ms", "upstream_id")


def told(answer: Answer) -> tuple[Any, ...]:
    """All that must be the same: the bytes but for id and time, and the record but for its times."""
    assert answer.status == 200, answer.raw
    assert answer.is_done, answer.raw
    raw = re.sub(rb'"created":\d+', b"", answer.raw.replace(answer.id.encode(), b"ID"))
    return raw, {name: value for name, value in answer.record.items() if name not in OWN}


def arguments(answer: Answer) -> str:
    deltas = [choice["delta"] for event in answer.events for choice in event["choices"]]
    return "".join(call["function"]["arguments"] for delta in deltas for call in delta.get("tool_calls") or ())


def text(answer: Answer) -> str:
    deltas = [choice["delta"] for event in answer.events for choice in event["choices"]]
    return "".join((delta.get("reasoning_content") or "") + (delta.get("content") or "") for delta in deltas)


@pytest.fixture(scope="module")
def whole(place: Place) -> Answer:
    """The same answer, each event written in one piece."""
    return place.scripted(fields=FIELDS, **SCRIPT)


def test_it_passes_every_character(whole: Answer) -> None:
    assert text(whole) == "".join(TEXTS)
    assert arguments(whole) == "".join(ARGUMENTS)
    assert whole.usage is not None
    assert whole.usage["completion_tokens"] == len(TEXTS) + len(ARGUMENTS) == whole.record["output_tokens"]
    assert whole.record["usage_source"] == "reported"
    assert whole.record["finish_reason"] == "tool_calls"


def test_it_passes_characters_written_byte_by_byte(place: Place, whole: Answer) -> None:
    answer = place.scripted(fields=FIELDS, split_every=1, **SCRIPT)
    assert "\ufffd" not in answer.raw.decode()
    assert told(answer) == told(whole)


@pytest.mark.parametrize("eol", ["\n", "\r\n", "\r"])
def test_it_answers_the_same_for_a_sample_of_two_way_splits(place: Place, whole: Answer, eol: str) -> None:
    expected = told(whole)
    for at in random.Random(eol).sample(range(1, 5000), 12):
        answer = place.scripted(fields=FIELDS, split=[at], split_ms=1, eol=eol, **SCRIPT)
        assert told(answer) == expected, at


def test_it_answers_the_same_for_random_segments(place: Place, whole: Answer) -> None:
    expected = told(whole)
    for seed in range(12):
        answer = place.scripted(fields=FIELDS, split=seed, split_max=64, end_newline=seed % 2 == 0, **SCRIPT)
        assert told(answer) == expected, seed


def test_it_takes_an_event_of_almost_4_mib(place: Place) -> None:
    size = 4 * 2**20 - 1000
    answer = place.scripted(fields=FIELDS | {"max_tokens": 2}, tokens=2, big_event=size)
    assert answer.is_done
    assert len(text(answer)) == size + len("tok1 ")
    assert answer.record["output_tokens"] == 2


def test_it_ends_a_stream_with_an_event_beyond_4_mib(place: Place) -> None:
    answer = place.scripted(fields=FIELDS, tokens=3, big_event=4 * 2**20 + 1)
    assert answer.status == 502
    assert answer.error["code"] == "upstream_error"
    assert (answer.record["status"], answer.record["output_tokens"]) == ("error", 0)


def test_it_takes_data_of_several_lines_and_cr_lf_in_two_reads(place: Place) -> None:
    segments = [
        'data: {"object":"chat.completion.chunk",\r',
        '\ndata: "choices":[{"index":0,\r',
        '\ndata: "delta":{"content":"one"},"finish_reason":"stop"}]}\r',
        "\n\r",
        "\ndata: [DONE]\r",
        "\n\r\n",
    ]
    raw = [base64.b64encode(segment.encode()).decode() for segment in segments]
    answer = place.scripted(fields=FIELDS, raw=raw, split_ms=2)
    assert (answer.status, text(answer), answer.is_done) == (200, "one", True)
