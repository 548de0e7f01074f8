"""Usage as upstreams tell it, in whatever form: OpenAI's object and what others made of it, llama.cpp's timings."""

import msgspec


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _CompletionDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


class Usage(msgspec.Struct):
    """OpenAI's usage object, with SGLang's top-level `reasoning_tokens` and what others say of their cache in:
    Moonshot's `cached_tokens`, DeepSeek's `prompt_cache_hit_tokens`."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    prompt_cache_hit_tokens: int | None = None

    @property
    def cached(self) -> int | None:
        details = self.prompt_tokens_details
        said = (details.cached_tokens if details else None, self.cached_tokens, self.prompt_cache_hit_tokens)
        return next((tokens for tokens in said if tokens is not None), None)

    @property
    def reasoning(self) -> int:
        of_output = self.completion_tokens_details
        return self.reasoning_tokens or (of_output.reasoning_tokens if of_output else None) or 0

    @property
    def apart(self) -> int:
        """Output that is in the total alone: xAI's reasoning tokens are no completion tokens, and Gemini's are not even
        named. What of a total is as much as was cached may be that."""
        beyond = (self.total_tokens or 0) - (self.prompt_tokens or 0) - (self.completion_tokens or 0)
        is_reasoning = self.reasoning == beyond or (not self.reasoning and beyond != self.cached)
        return beyond if self.prompt_tokens and beyond > 0 and is_reasoning else 0


class _Bare(msgspec.Struct):
    """The counts alone, of a usage object whose details have a form that nobody knows, or that writes 9 as 9.0."""

    prompt_tokens: int | float | None = None
    completion_tokens: int | float | None = None


class Timings(msgspec.Struct):
    """llama.cpp's running counts: prompt tokens computed and taken from its cache, tokens generated."""

    prompt_n: int = 0
    cache_n: int = 0
    predicted_n: int = 0


_usage = msgspec.json.Decoder(Usage)
_bare = msgspec.json.Decoder(_Bare)
_timings = msgspec.json.Decoder(Timings)


def usage_of(raw: msgspec.Raw) -> Usage | None:
    """None for what is no usage object."""
    try:
        return _usage.decode(raw)
    except msgspec.DecodeError:
        pass
    try:
        bare = _bare.decode(raw)
    except msgspec.DecodeError:
        return None
    return Usage(_whole(bare.prompt_tokens), _whole(bare.completion_tokens))


def _whole(number: float | None) -> int | None:
    return None if number is None or number % 1 else int(number)


def timings_of(raw: msgspec.Raw) -> Timings | None:
    """None for what others call so."""
    try:
        return _timings.decode(raw)
    except msgspec.DecodeError:
        return None
