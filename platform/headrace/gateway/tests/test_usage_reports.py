"""Whatever an upstream says of its use, the client and the record get the same sane numbers."""

from typing import Any

import pytest

from headrace.gateway.tests.calling import Answer, Place

# A prompt of 40 tokens, 10 of them cached; an answer of 5 tokens, which the engine's own tokenizer takes for 7.
SCRIPT: dict[str, Any] = {"tokens": 5, "prompt_tokens": 40, "cached_tokens": 10}
TOLD = (40, 10, 5, "reported")

# usage -> input, cached, output, source at an engine with a tokenizer. None: by the tokenizer, checked apart.
AT_AN_ENGINE: dict[str, tuple[int | None, int, int, str]] = {
    "asked": TOLD,
    "continuous": TOLD,
    "final": TOLD,
    "finish": TOLD,
    "twice": TOLD,
    "none": (None, 0, 7, "counted"),
    "null": (None, 0, 7, "counted"),
    "null_zero": (None, 0, 7, "counted"),
    "zero": (None, 0, 7, "counted"),
    "negative": (None, 0, 7, "counted"),
    "string": TOLD,
    "huge": (None, 10, 7, "counted"),  # each field by itself
    "partial": (40, 0, 7, "counted"),
    "cached_over_prompt": (40, 40, 5, "estimated"),
}


@pytest.fixture(scope="module")
def hosted(place: Place) -> str:
    """A model at a provider, which has no tokenizer for us."""
    model = place.add_model(provider=True)
    place.wait_known(model)
    return model


def ask(place: Place, *, stream: bool, wants_usage: bool = True, model: str | None = None, **script: Any) -> Answer:
    fields: dict[str, Any] = {"stream": stream, "max_tokens": 500, "model": model or place.world.model}
    if stream and wants_usage:
        fields["stream_options"] = {"include_usage": True}
    answer = place.scripted(fields=fields, **(SCRIPT | script))
    assert answer.status == 200, answer.raw
    assert answer.is_done or not stream
    return answer


def told(answer: Answer) -> tuple[int, int, int, str]:
    """The record's numbers; the client was told the same."""
    record, usage = answer.record, answer.usage
    assert usage is not None
    assert usage["prompt_tokens"] == record["input_tokens"]
    assert usage["completion_tokens"] == record["output_tokens"]
    assert usage["total_tokens"] == record["input_tokens"] + record["output_tokens"]
    assert usage["prompt_tokens_details"]["cached_tokens"] == record["cached_input_tokens"] <= record["input_tokens"]
    assert usage["completion_tokens_details"]["reasoning_tokens"] == record["reasoning_tokens"]
    assert record["status"] == "ok"
    return record["input_tokens"], record["cached_input_tokens"], record["output_tokens"], record["usage_source"]


@pytest.mark.parametrize("usage", AT_AN_ENGINE)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_it_bills_what_an_engine_reports_or_counts_it_there(place: Place, usage: str, stream: bool) -> None:
    expected_prompt, cached, output, source = AT_AN_ENGINE[usage]
    answer = ask(place, stream=stream, usage=usage)
    if expected_prompt is None:
        # The message is the script itself, at four bytes a token, and four tokens for its frame.
        [message] = place.seen(answer)["body"]["messages"]
        expected_prompt = -(-len(message["content"].encode()) // 4) + 4
    assert told(answer)[0] == pytest.approx(expected_prompt, rel=0.02)
    assert told(answer)[1:] == (cached, output, source)


@pytest.mark.parametrize("usage", AT_AN_ENGINE)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_it_estimates_where_nobody_can_count(place: Place, hosted: str, usage: str, stream: bool) -> None:
    told_prompt, cached, _, source = AT_AN_ENGINE[usage]
    answer = ask(place, stream=stream, model=hosted, usage=usage)
    input_tokens, cached_tokens, output_tokens, usage_source = told(answer)
    if source == "reported":
        assert told(answer) == TOLD
        return
    assert usage_source == "estimated"
    assert told_prompt in {None, input_tokens}
    assert 0 < input_tokens < 200
    assert cached_tokens in {0, cached}
    assert 5 <= output_tokens <= 10


@pytest.mark.parametrize("usage", ["asked", "twice", "null", "finish"])
def test_it_shows_no_usage_to_a_client_that_did_not_ask(place: Place, usage: str) -> None:
    answer = ask(place, stream=True, wants_usage=False, usage=usage)
    assert b'"usage"' not in answer.raw
    assert all(event["choices"] for event in answer.events)
    seen = place.seen(answer)["body"]
    assert seen["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}


def test_it_shows_one_usage_event_and_null_before_it(place: Place) -> None:
    answer = ask(place, stream=True, usage="twice")
    assert [event["usage"] for event in answer.events[:-1]] == [None] * (len(answer.events) - 1)
    assert answer.events[-1]["choices"] == []


def test_it_sends_stream_options_with_streams_alone(place: Place, hosted: str) -> None:
    """A provider is asked for a stream of a whole answer too: so it is known what was generated, if its client
    leaves."""
    for model, is_stream in ((place.world.model, False), (hosted, True)):
        ask(place, stream=False, model=model)
        seen = place.seen()["body"]
        assert seen["stream"] is ("stream_options" in seen) is is_stream


@pytest.mark.parametrize("usage", ["asked", "continuous", "finish", "twice", "null"])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_it_counts_the_prompt_once_and_the_output_of_each_choice(place: Place, usage: str, stream: bool) -> None:
    fields: dict[str, Any] = {"stream": stream, "n": 2}
    if stream:
        fields["stream_options"] = {"include_usage": True}
    answer = place.scripted(fields=fields, usage=usage, reasoning=2, **SCRIPT)
    input_tokens, cached, output, source = told(answer)
    if usage == "null":
        assert (output, source) == (14, "counted")  # of each choice 25 bytes: 7
        return
    if usage == "finish" and stream:
        assert (cached, source) == (10, "reported")
    assert (input_tokens, output) == (40, 10)
    assert answer.record["reasoning_tokens"] == 4


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_it_counts_each_choice_by_itself(place: Place, n: int, stream: bool) -> None:
    """Of "tok0 tok1 tok2 tok3 tok4 ", 25 bytes: a quarter is 6.25, so that texts in one would be fewer than 7 each."""
    fields: dict[str, Any] = {"stream": stream, "n": n}
    if stream:
        fields["stream_options"] = {"include_usage": True}
    answer = place.scripted(fields=fields, usage="null", **SCRIPT)
    _, _, output, source = told(answer)
    assert (output, source) == (7 * n, "counted")
    assert answer.record["output_tokens"] == 7 * n


def test_it_bills_a_stream_that_breaks_off_by_what_the_engine_said_of_each_choice(place: Place) -> None:
    answer = place.scripted(fields={"stream": True, "n": 2}, reasoning=1, error_event_after=3, **SCRIPT)
    record = answer.record
    assert (record["status"], record["input_tokens"], record["output_tokens"]) == ("error", 40, 6)
    assert (record["reasoning_tokens"], record["usage_source"]) == (2, "reported")


def test_it_counts_only_what_was_delivered_of_a_stream_that_breaks_off(place: Place, hosted: str) -> None:
    """The upstream's error text is none of it, however long."""
    for model, usage, low, high in (
        (place.world.model, "null", 4, 4),  # "tok0 tok1 tok2 ": 15 bytes
        (hosted, "final", 3, 5),
    ):
        answer = place.scripted(
            fields={"stream": True, "model": model}, usage=usage, error_event_after=3, pad=200_000, **SCRIPT
        )
        assert answer.error["code"] == "upstream_error"
        assert low <= answer.record["output_tokens"] <= high
        assert answer.record["usage_source"] != "reported"


def test_it_counts_text_of_many_bytes_a_character(place: Place, hosted: str) -> None:
    """Three bytes a character: a count by characters would be a third."""
    text = ["東京" * 20] * 10  # 1,200 bytes
    answer = ask(place, stream=True, model=hosted, usage="none", tokens=None, text=text)
    assert told(answer)[2] > 250


@pytest.mark.parametrize("timings", ["fast", [], {"prompt_n": "x"}, {"predicted_n": -1}, {"predicted_n": 10**30}, 7])
def test_it_passes_over_timings_that_are_not_llama_cpp_s(place: Place, timings: Any) -> None:
    choice = {"index": 0, "delta": {"content": "tok0 "}, "finish_reason": "stop"}
    answer = place.events_from_upstream([{"choices": [choice], "timings": timings}], stream=True)
    assert (answer.status, answer.text, answer.is_done) == (200, "tok0 ", True)
    assert answer.record["output_tokens"] in {1, 2}
    assert answer.record["input_tokens"] > 0
