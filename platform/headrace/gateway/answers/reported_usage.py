"""Usage as upstreams tell it, in whatever spelling and form: one table of names, and what the numbers mean together.

Read are OpenAI's object and what others made of it (SGLang, vLLM, DeepSeek, Moonshot, xAI, OpenRouter, Anthropic,
Gemini, Bedrock, Ollama), and llama.cpp's timings. A number is any that is whole, also as 80.0 or "80"; a field of
another form says nothing, and takes nothing from the others.
"""

import re
from typing import Any

import msgspec

# Name by name, details as path, in small letters with underscores: promptTokenCount is prompt_token_count. Of several
# that are told the first that is more than nothing counts, of cached and reasoning tokens the largest.
_PROMPT = (
    "prompt_tokens", "input_tokens", "prompt_token_count", "input_token_count", "prompt_eval_count",
    "native_tokens_prompt", "tokens_prompt", "num_prompt_tokens",
)  # fmt: skip
_OUTPUT = (
    "completion_tokens", "output_tokens", "candidates_token_count", "output_token_count", "eval_count",
    "generated_tokens", "generated_token_count", "completion_token_count", "native_tokens_completion",
    "tokens_completion", "num_completion_tokens", "num_generated_tokens",
)  # fmt: skip
_TOTAL = ("total_tokens", "total_token_count")
_CACHED = (
    "prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens", "input_token_details.cache_read",
    "prompt_tokens_details.num_cached_tokens", "prompt_token_details.cached_tokens", "cached_tokens",
    "num_cached_tokens", "prompt_cache_hit_tokens", "cached_prompt_tokens", "cached_input_tokens",
    "cached_content_token_count", "native_tokens_cached", "prompt_tokens_cached",
)  # fmt: skip
_MISSED = ("prompt_cache_miss_tokens",)
# Anthropic's and Bedrock's, beside input tokens that are without them; gateways tell them of all input tokens, too.
_CACHE_READ = ("cache_read_input_tokens", "cache_read_input_token_count", "cache_read_tokens")
_CACHE_WRITTEN = (
    "cache_creation_input_tokens", "cache_write_input_token_count", "cache_write_input_tokens",
    "tool_use_prompt_token_count",
)  # fmt: skip
_THOUGHTS = ("thoughts_token_count",)
_REASONING = (
    "reasoning_tokens", "completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens",
    "completion_token_details.reasoning_tokens", "completion_tokens_details.thinking_tokens",
    "output_token_details.reasoning", "native_tokens_reasoning", *_THOUGHTS,
)  # fmt: skip
_WITHOUT_CACHED = frozenset(_PROMPT) - {"prompt_tokens", "prompt_token_count"}
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_DIGITS = re.compile(r"-?\d{1,15}(?:\.0*)?")


class Usage(msgspec.Struct):
    """prompt: all of it, cached tokens included. cached: None where nothing is said of a cache. apart: the output
    tokens that are in the total alone, and not in `output`."""

    prompt: int | None = None
    output: int | None = None
    cached: int | None = None
    reasoning: int = 0
    apart: int = 0


class Timings(msgspec.Struct):
    """llama.cpp's running counts: prompt tokens computed and taken from its cache, tokens generated."""

    prompt_n: int = 0
    cache_n: int = 0
    predicted_n: int = 0


_any = msgspec.json.Decoder()
_timings = msgspec.json.Decoder(Timings)


def usage_of(raw: msgspec.Raw) -> Usage | None:
    """None for what is no usage object. One that holds another, and tells nothing itself, is that other."""
    try:
        told = _any.decode(raw)
        return usage_in(_any.decode(told.encode()) if isinstance(told, str) else told)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None


def usage_in(told: Any) -> Usage | None:
    """The same of what is decoded."""
    if isinstance(told, list):
        told = told[-1] if told else None
    if not isinstance(told, dict):
        return None
    usage = _usage(_named(told))
    if usage.prompt is None and usage.output is None:
        inner = [each for value in told.values() if isinstance(value, dict) and (each := _usage(_named(value)))]
        return max(inner, key=lambda each: (each.output or 0, each.prompt or 0), default=usage)
    return usage


def _named(told: dict[str, Any]) -> dict[str, Any]:
    """With all names, also of details, in small letters with underscores."""
    return {
        name if name.islower() else _CAPITAL.sub("_", name).lower(): _named(value) if isinstance(value, dict) else value
        for name, value in told.items()
    }


def _usage(told: dict[str, Any]) -> Usage:
    prompt, output, total = (_first(told, names) for names in (_PROMPT, _OUTPUT, _TOTAL))
    read, written = _largest(told, _CACHE_READ), _largest(told, _CACHE_WRITTEN) or 0
    cached = max((each for each in (_largest(told, _CACHED), read) if each is not None), default=None)
    reasoning = _largest(told, _REASONING) or 0
    if prompt is None and (missed := _first(told, _MISSED)) is not None:
        prompt = missed + max(cached or 0, 0)
    if prompt is None and total and output is not None and 0 < output < total:
        prompt = total - output
    elif output is None and total and prompt is not None and 0 < prompt < total:
        output = total - prompt
    if prompt is not None and prompt >= 0:
        is_beside = _is_beside(told, prompt, read)
        prompt += _missing_of(prompt, output or 0, total, cached or 0, written, is_beside=is_beside)
    apart = _apart(prompt, output, total, reasoning, cached)
    if not total and not apart:
        apart = max(_first(told, _THOUGHTS) or 0, 0)
    return Usage(prompt, output, cached, reasoning, apart)


def timings_of(raw: msgspec.Raw) -> Timings | None:
    """None for what others call so."""
    try:
        return _timings.decode(raw)
    except msgspec.DecodeError:
        return None


def _is_beside(told: dict[str, Any], prompt: int, read: int | None) -> bool:
    """Whether the cached tokens are beside the prompt's, by the names alone."""
    is_theirs = next((name for name in _PROMPT if (_number(told.get(name)) or 0) > 0), "") in _WITHOUT_CACHED
    return bool(read) and (is_theirs or (read or 0) > prompt)


def _missing_of(prompt: int, output: int, total: int | None, cached: int, written: int, *, is_beside: bool) -> int:
    """The prompt tokens that are told beside `prompt`, and not in it: those of the cache.

    The total says it where it adds up with or without them, else the names do.
    """
    if cached < 0 or written < 0:
        return 0
    if total:
        beyond = total - prompt - output
        if beyond == 0:
            return 0
        if beyond > 0 and beyond in {cached, written, cached + written}:
            return beyond
    return cached + written if is_beside else 0


def _apart(prompt: int | None, output: int | None, total: int | None, reasoning: int, cached: int | None) -> int:
    """xAI's reasoning tokens are no completion tokens, and Gemini's are not even named. What of a total is as much as
    was cached may be that."""
    beyond = (total or 0) - (prompt or 0) - (output or 0)
    is_reasoning = reasoning == beyond or (not reasoning and beyond != cached)
    return beyond if prompt and prompt > 0 and beyond > 0 and is_reasoning else 0


def _first(told: dict[str, Any], names: tuple[str, ...]) -> int | None:
    found = [number for name in names if (number := _number(told.get(name))) is not None]
    return next((number for number in found if number > 0), found[0] if found else None)


def _largest(told: dict[str, Any], paths: tuple[str, ...]) -> int | None:
    found = [number for path in paths if (number := _number(_at(told, path))) is not None]
    return max(found, default=None)


def _at(told: dict[str, Any], path: str) -> Any:
    outer, _, inner = path.partition(".")
    value = told.get(outer)
    if not inner:
        return value
    return value.get(inner) if isinstance(value, dict) else None


def _number(value: Any) -> int | None:
    """A whole number in any form; None for all else. A bool is none."""
    if isinstance(value, str) and _DIGITS.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
