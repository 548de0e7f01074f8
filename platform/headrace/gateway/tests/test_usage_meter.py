"""The meter alone, told anything at all: never negative, never more than was allowed, and true where it can be."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.errors import BadAnswer
from headrace.gateway.answers.usage_meter import Counts, UsageMeter

MOST_OUTPUT, MOST_PROMPT = 300, 1000


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value).encode())


def meter() -> UsageMeter:
    return UsageMeter(most_prompt=MOST_PROMPT, most_output=MOST_OUTPUT)


def counts(
    of: UsageMeter, *, counted: int | None = None, counted_prompt: int | None = None, ratio: float = 4
) -> Counts:
    return of.counts(prompt_estimate=50, counted_prompt=counted_prompt, counted=counted, bytes_per_token=ratio)


def usage(prompt: Any = None, completion: Any = None, cached: Any = None, reasoning: Any = None) -> msgspec.Raw:
    return raw(
        {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens_details": {"reasoning_tokens": reasoning},
        }
    )


numbers = st.one_of(st.none(), st.integers(-(2**70), 2**70), st.integers(-5, 400), st.floats(), st.text(max_size=3))
usages = st.one_of(
    st.builds(usage, numbers, numbers, numbers, numbers),
    st.sampled_from(
        [msgspec.Raw(data) for data in (b"7", b'"x"', b"[]", b"{}", b'{"prompt_tokens":{}}', b"null", b"{")]
    ),
)
timings = st.dictionaries(st.sampled_from(["prompt_n", "cache_n", "predicted_n", "x"]), numbers).map(raw)
steps = st.one_of(
    st.tuples(st.just("delivered"), st.text(st.characters(), max_size=20)),
    st.tuples(st.just("final"), usages),
    st.tuples(st.just("running"), st.integers(0, 3), usages),
    st.tuples(st.just("timings"), st.integers(0, 3), timings),
)


@given(st.lists(steps, max_size=30), st.none() | st.integers(0, 500), st.none() | st.integers(0, 2000))
def test_it_stays_sane_whatever_it_is_told(
    told: list[tuple[Any, ...]], counted: int | None, counted_prompt: int | None
) -> None:
    of = meter()
    for name, *arguments in told:
        getattr(of, name)(*arguments)
        counts(of)  # a pulse may ask at any time
    got = counts(of, counted=counted, counted_prompt=counted_prompt)
    events = sum(name == "delivered" for name, *_ in told)
    assert 0 <= got.cached_input_tokens <= got.input_tokens
    assert 0 <= got.reasoning_tokens <= got.output_tokens
    assert got.output_tokens <= MOST_OUTPUT
    assert 0 < got.input_tokens <= MOST_PROMPT
    assert got.source in {"reported", "counted", "estimated"}
    if events:
        assert got.output_tokens > 0, "never silently nothing"
    assert got == counts(of, counted=counted, counted_prompt=counted_prompt), "asking changes nothing"


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3)), min_size=1, max_size=60))
def test_it_sums_the_last_of_each_choice(events: list[tuple[int, int]]) -> None:
    of, outputs = meter(), dict[int, int]()
    for index, tokens in events:
        outputs[index] = outputs.get(index, 0) + tokens
        of.running(index, usage(30, outputs[index], 10))
        of.delivered("x")
    assert counts(of) == Counts(30, 10, sum(outputs.values()), 0, "reported")
    of.final(usage(30, sum(outputs.values()), 10))
    assert counts(of) == Counts(30, 10, sum(outputs.values()), 0, "reported")


def test_it_does_not_sum_the_whole_request_s_use_over_its_choices() -> None:
    """Told on the last event of each choice, and once more at the end, it is one and the same."""
    of = meter()
    for index in range(3):
        of.delivered("x")
        of.running(index, usage(30, 60))
    of.final(usage(30, 60))
    assert counts(of) == Counts(30, 0, 60, 0, "reported")
    of.running(0, usage(30, 90))
    assert counts(of).output_tokens == 210, "a final that one choice alone passes is not the whole"


def test_it_ranks_what_it_is_told() -> None:
    of = meter()
    of.delivered("x" * 40)
    assert counts(of) == Counts(50, 0, 10, 0, "estimated")
    assert counts(of, ratio=0) == Counts(50, 0, 1, 0, "estimated")
    assert counts(of, counted=9) == Counts(50, 0, 9, 0, "estimated")
    assert counts(of, counted=9, counted_prompt=31) == Counts(31, 0, 9, 0, "counted")
    of.final(usage(30, None))
    assert counts(of, counted=9, counted_prompt=31) == Counts(30, 0, 9, 0, "counted")
    of.final(usage(30, 8, 40))
    assert counts(of, counted=9) == Counts(30, 30, 8, 0, "estimated"), "no more was cached than there was"


def test_it_bills_no_more_of_a_prompt_than_it_may_whoever_counted() -> None:
    of = meter()
    of.delivered("x")
    of.final(usage(MOST_PROMPT, 1))
    assert counts(of) == Counts(MOST_PROMPT, 0, 1, 0, "reported")
    of = meter()
    of.delivered("x")
    of.final(usage(MOST_PROMPT + 1, 1))
    assert counts(of) == Counts(50, 0, 1, 0, "estimated"), "what cannot be true counts as not said"
    assert counts(of, counted_prompt=MOST_PROMPT + 1) == Counts(MOST_PROMPT, 0, 1, 0, "estimated")


@pytest.mark.parametrize(
    "said",
    [
        {"prompt_tokens_details": {"cached_tokens": 20}, "cached_tokens": 7},
        {"prompt_tokens_details": None, "cached_tokens": 20},
        {"prompt_tokens_details": {"cached_tokens": None}, "prompt_cache_hit_tokens": 20},
    ],
)
def test_it_finds_what_was_cached_wherever_it_is_said(said: dict[str, Any]) -> None:
    of = meter()
    of.final(raw({"prompt_tokens": 30, "completion_tokens": 8, **said}))
    assert counts(of) == Counts(30, 20, 8, 0, "reported")
    assert of.has_cached


def test_it_bills_no_more_output_than_was_asked_for_and_ends_what_goes_on() -> None:
    of = meter()

    def go_on() -> None:
        for number in range(10 * MOST_OUTPUT):
            of.running(0, usage(30, number + 1))
            of.delivered("word ")

    with pytest.raises(BadAnswer):
        go_on()
    assert MOST_OUTPUT < of.events < 2 * MOST_OUTPUT
    assert counts(of) == Counts(30, 0, MOST_OUTPUT, 0, "estimated")
    assert of.overrun == {"output"}
    of = meter()
    of.delivered("x" * 5000)
    of.final(usage(30, MOST_OUTPUT + 1))
    assert counts(of) == Counts(30, 0, MOST_OUTPUT, 0, "estimated"), "one that tells more is not believed either"
    assert of.overrun == {"output"}


def test_it_takes_no_text_that_comes_a_character_at_a_time_for_more_than_was_asked_for() -> None:
    of = meter()
    for _ in range(4 * MOST_OUTPUT):
        of.delivered("x")
    of.final(usage(30, MOST_OUTPUT))
    assert (counts(of), of.overrun) == (Counts(30, 0, MOST_OUTPUT, 0, "reported"), set())


@pytest.mark.parametrize("last", [usage(30, 310), usage(30, 0), usage(30, None), raw("x")])
def test_it_counts_by_itself_where_the_last_of_the_running_words_cannot_be_true(last: msgspec.Raw) -> None:
    """Of running words only the last is read: the first, of 10 tokens, is no count of what came after it."""
    of = meter()
    for number in range(1, 31):
        of.running(0, usage(30, 10 * number))
        of.delivered("w" * 40)
    of.running(0, last)
    assert (counts(of), of.is_reported, of.texts) == (Counts(30, 0, 300, 0, "estimated"), False, None)
    of.running(0, usage(30, 299))
    assert counts(of) == Counts(30, 0, 299, 0, "reported")


@pytest.mark.parametrize(
    ("said", "output", "reasoning"),
    [
        ({"total_tokens": 130}, 100, 92),  # Gemini: not named at all
        ({"total_tokens": 130, "completion_tokens_details": {"reasoning_tokens": 92}}, 100, 92),  # xAI
        ({"total_tokens": 38, "completion_tokens_details": {"reasoning_tokens": 5}}, 8, 5),  # OpenAI: a part of it
        ({"total_tokens": 45, "completion_tokens_details": {"reasoning_tokens": 5}}, 8, 5),
        ({"total_tokens": 58, "prompt_tokens_details": {"cached_tokens": 20}}, 8, 0),  # the cached, added once more
        ({"total_tokens": 10}, 8, 0),
        ({"total_tokens": 10**9}, 0, 0),
    ],
)
def test_it_finds_reasoning_that_is_in_the_total_alone(said: dict[str, Any], output: int, reasoning: int) -> None:
    of = meter()
    of.final(raw({"prompt_tokens": 30, "completion_tokens": 8, **said}))
    assert (counts(of).output_tokens, counts(of).reasoning_tokens) == (output, reasoning)


def test_it_keeps_the_text_until_an_upstream_counts_credibly() -> None:
    of = meter()
    for nonsense in (usage(30, 0), usage(30, -1), usage(30, "seven"), usage(30, 10**9), raw(7)):
        of.delivered("ab")
        of.running(0, nonsense)
    assert (of.is_reported, of.texts) == (False, ["ab" * 5])
    of.running(0, usage(30, 6))
    of.delivered("cd")
    assert of.is_reported
    assert counts(of).output_tokens == 6


@pytest.mark.parametrize(
    "odd",
    [
        {"prompt_tokens_details": []},  # an empty object, as PHP writes it
        {"prompt_tokens_details": {"cached_tokens": "twelve"}},
        {"completion_tokens_details": {"reasoning_tokens": 1.5}},
        {"total_tokens": "38", "cached_tokens": {}},
        {"prompt_tokens": 30.0, "completion_tokens": 8.0},
    ],
)
def test_it_takes_the_counts_of_a_usage_whose_details_nobody_knows(odd: dict[str, Any]) -> None:
    of = meter()
    of.delivered("x")
    of.final(raw({"prompt_tokens": 30, "completion_tokens": 8, **odd}))
    assert counts(of) == Counts(30, 0, 8, 0, "reported")


def test_it_keeps_no_text_without_end() -> None:
    of = meter()
    for _ in range(300):
        of.delivered("漢" * 2000)
    assert of.texts is None
    assert of.has_output


def test_it_takes_an_empty_answer_for_one() -> None:
    of = meter()
    of.final(usage(30, 0))
    assert counts(of) == Counts(30, 0, 0, 0, "reported")
