"""Every spelling and form of usage that is known, and what the numbers mean together: one row each."""

import json
from typing import Any

import msgspec
import pytest

from headrace.gateway.answers.usage_meter import Counts, UsageMeter

MOST_PROMPT, MOST_OUTPUT = 10_000, 500


def counts_of(told: Any, *, delivered: str = "x", events: int = 1, text_bytes: int = 0, ask: int = 300) -> Counts:
    meter = UsageMeter(most_prompt=MOST_PROMPT, most_output=MOST_OUTPUT, text_bytes=text_bytes)
    for _ in range(events):
        meter.delivered(delivered)
    meter.final(msgspec.Raw(json.dumps(told).encode()))
    return meter.counts(prompt_estimate=ask, counted_prompt=None, counted=None, bytes_per_token=4)


BASE = {"prompt_tokens": 100, "completion_tokens": 3}
CACHED_80: list[dict[str, Any]] = [
    {"prompt_tokens_details": {"cached_tokens": 80}},
    {"prompt_tokens_details": {"cached_tokens": 80.0}},
    {"prompt_tokens_details": {"cached_tokens": "80"}},
    {"prompt_tokens_details": {"cached_tokens": 80}, "completion_tokens_details": []},
    {"prompt_tokens_details": {"cached_tokens": 80}, "completion_tokens_details": "none"},
    {"prompt_tokens_details": {"cached_tokens": 80}, "total_tokens": "103"},
    {"prompt_tokens_details": {"cached_tokens": 80}, "total_tokens": 103.0, "reasoning_tokens": True},
    {"prompt_tokens_details": {"cached_tokens": 80, "audio_tokens": {}}, "total_tokens": None},
    {"prompt_tokens_details": [], "cached_tokens": 80},
    {"prompt_tokens_details": {"cached_tokens": 0}, "cache_read_input_tokens": 80},
    {"input_tokens_details": {"cached_tokens": 80}},
    {"input_token_details": {"cache_read": 80}},
    {"cache_read_input_tokens": 80, "cache_creation_input_tokens": 0},
    {"cache_read_input_tokens": 80, "cache_creation_input_tokens": 10, "total_tokens": 103},
    {"num_cached_tokens": 80},
    {"prompt_cache_hit_tokens": 80, "prompt_cache_miss_tokens": 20},
    {"cached_tokens": 80},
    {"cachedInputTokens": 80},
    {"promptTokensDetails": {"cachedTokens": 80}},
    {"cached_content_token_count": 80},
]


@pytest.mark.parametrize("said", CACHED_80, ids=lambda said: json.dumps(said)[:60])
def test_cached_tokens_are_read_in_every_form(said: dict[str, Any]) -> None:
    assert counts_of(BASE | said) == Counts(100, 80, 3, 0, "reported")


@pytest.mark.parametrize(
    ("told", "prompt", "cached"),
    [
        ({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 2000}, "total_tokens": 2008}, 2005, 2000),
        ({"prompt_tokens": 2500, "prompt_tokens_details": {"cached_tokens": 2000}, "total_tokens": 4503}, 4500, 2000),
        ({"prompt_tokens": 5, "cache_read_input_tokens": 2000}, 2005, 2000),
        ({"prompt_tokens": 5, "cache_read_input_tokens": 2000, "cache_creation_input_tokens": 100}, 2105, 2000),
        ({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 2000}, "total_tokens": "2008"}, 2005, 2000),
        ({"prompt_tokens": 2500, "cache_read_input_tokens": 2000, "total_tokens": 2503}, 2500, 2000),
        ({"prompt_tokens": 2500, "cache_read_input_tokens": 2000}, 2500, 2000),
        ({"input_tokens": 2500, "cache_read_input_tokens": 2000, "output_tokens": 3}, 4500, 2000),
        ({"input_tokens": 2500, "input_tokens_details": {"cached_tokens": 2000}}, 2500, 2000),
    ],
    ids=lambda value: json.dumps(value)[:70],
)
def test_prompt_is_whole_where_cached_tokens_are_told_beside_it(told: dict[str, Any], prompt: int, cached: int) -> None:
    assert counts_of({"completion_tokens": 3} | told) == Counts(prompt, cached, 3, 0, "reported")


@pytest.mark.parametrize(
    "told",
    [
        {"prompt_tokens": 40, "completion_tokens": 7},
        {"input_tokens": 40, "output_tokens": 7},
        {"promptTokenCount": 40, "candidatesTokenCount": 7, "totalTokenCount": 47},
        {"inputTokenCount": 40, "outputTokenCount": 7},
        {"prompt_eval_count": 40, "eval_count": 7},
        {"prompt_tokens": "40", "completion_tokens": "7"},
        {"prompt_tokens": 40.0, "completion_tokens": 7.0},
        {"promptTokens": 40, "completionTokens": 7},
        {"inputTokens": 40, "outputTokens": 7, "totalTokens": 47},
        {"prompt_token_count": 40, "candidates_token_count": 7},
        {"input_token_count": 40, "generated_token_count": 7},
        {"native_tokens_prompt": 40, "native_tokens_completion": 7},
        {"prompt_tokens": 0, "input_tokens": 40, "completion_tokens": 0, "output_tokens": 7},
        {"prompt_tokens": -1, "input_tokens": 40, "completion_tokens": None, "output_tokens": 7},
        {"prompt_tokens": 40, "total_tokens": 47},
        {"completion_tokens": 7, "total_tokens": 47},
        {"usage": {"prompt_tokens": 40, "completion_tokens": 7}},
        {"billed_units": {"input_tokens": 9, "output_tokens": 7}, "tokens": {"input_tokens": 40, "output_tokens": 7}},
        '{"prompt_tokens": 40, "completion_tokens": 7}',
        [{"prompt_tokens": 40, "completion_tokens": 2}, {"prompt_tokens": 40, "completion_tokens": 7}],
        [{"prompt_tokens": 40, "completion_tokens": 7}],
    ],
    ids=json.dumps,
)
def test_counts_are_read_in_every_spelling(told: Any) -> None:
    assert counts_of(told) == Counts(40, 0, 7, 0, "reported")


@pytest.mark.parametrize("prompt", [None, 0, -5, 10**9, "many"], ids=str)
def test_cached_tokens_count_also_where_the_prompt_s_do_not(prompt: Any) -> None:
    counts = counts_of({"prompt_tokens": prompt, "completion_tokens": 7, "cached_tokens": 80})
    assert counts == Counts(300, 80, 7, 0, "estimated")


@pytest.mark.parametrize("total", [None, 50], ids=str)
def test_thoughts_are_output_beside_what_is_told_of_it(total: int | None) -> None:
    told = {"promptTokenCount": 40, "candidatesTokenCount": 7, "thoughtsTokenCount": 3, "totalTokenCount": total}
    assert counts_of(told) == Counts(40, 0, 10, 3, "reported")


NONSENSE: list[Any] = [None, True, False, -1, -40, 1.5, 10**30, 1e300, "NaN", "", "many", [], {}, [40], "-40"]


@pytest.mark.parametrize("nonsense", NONSENSE, ids=str)
def test_what_is_no_number_takes_nothing_from_the_others(nonsense: Any) -> None:
    assert counts_of({"prompt_tokens": nonsense, "completion_tokens": 7}) == Counts(300, 0, 7, 0, "estimated")
    prompt_alone = counts_of({"prompt_tokens": 40, "completion_tokens": nonsense})
    assert (prompt_alone.input_tokens, prompt_alone.output_tokens, prompt_alone.source) == (40, 1, "estimated")
    for name in ("total_tokens", "reasoning_tokens", "completion_tokens_details", "cache_creation_input_tokens"):
        assert counts_of({**BASE, "cached_tokens": 80, name: nonsense}).cached_input_tokens == 80


def test_figures_that_are_far_too_small_count_as_not_said() -> None:
    assert counts_of(BASE | {"prompt_tokens": 5}, text_bytes=8000).input_tokens == 300
    assert counts_of(BASE | {"prompt_tokens": 1500}, text_bytes=8000).input_tokens == 1500
    assert counts_of({"prompt_tokens": 100, "completion_tokens": 1}, events=400) == Counts(100, 0, 400, 0, "estimated")
    one_piece = counts_of({"prompt_tokens": 100, "completion_tokens": 1}, delivered="word " * 320)
    assert one_piece == Counts(100, 0, 400, 0, "estimated")


def test_sources_are_told_of_input_and_output_apart() -> None:
    meter = UsageMeter(most_prompt=MOST_PROMPT, most_output=MOST_OUTPUT)
    meter.delivered("x")
    meter.final(msgspec.Raw(b'{"prompt_tokens":40}'))
    meter.counts(prompt_estimate=9, counted_prompt=None, counted=3, bytes_per_token=4)
    assert meter.sources == ("reported", "counted")
