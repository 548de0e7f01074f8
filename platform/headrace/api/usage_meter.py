"""Counting what a request used while it runs, from whatever the upstream says, and distrusting it.

Trust, in this order: the final usage; the running usage on events (per choice: the last of each, outputs summed, the
prompt once); the engine's tokenizer over the delivered text; one token an event where the engine streams so; bytes.
Numbers that cannot be true (negative, no output beside content, more cached than prompt, more than was allowed) are
bounded and the record says `estimated`.
"""

from typing import Any

import msgspec

_MOST = 2**40  # more tokens than any request has; keeps a lying upstream inside the ledger's integers


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _CompletionDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


class Usage(msgspec.Struct):
    """OpenAI's usage object, with SGLang's top-level `reasoning_tokens`."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None
    reasoning_tokens: int | None = None


class Timings(msgspec.Struct):
    """llama.cpp's running counts: prompt tokens computed and taken from its cache, tokens generated."""

    prompt_n: int = 0
    cache_n: int = 0
    predicted_n: int = 0


class Counts(msgspec.Struct):
    """What is billed. source: reported, counted or estimated."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    source: str = "reported"


_usage = msgspec.json.Decoder(Usage)
_TEXT_KEPT = 2**20


class UsageMeter:
    """The running count of one attempt. `text` is what was delivered, kept only while nothing else counts it."""

    __slots__ = (
        "_bytes", "_cached", "_final", "_latest", "_lied", "_outputs", "_prompt", "_reasoning", "events", "text",
    )  # fmt: skip

    def __init__(self) -> None:
        self._prompt: int | None = None
        self._cached = 0
        self._reasoning = 0
        self._outputs: dict[int, int] = {}
        self._latest: dict[int, msgspec.Raw | None] = {}
        self._final: int | None = None
        self._lied = False
        self._bytes = 0
        self.events = 0
        self.text: list[str] = []

    @property
    def has_output(self) -> bool:
        return self.events > 0

    @property
    def is_reported(self) -> bool:
        """Whether the upstream has counted the output itself, credibly."""
        self._read_latest()
        return bool(self._final or any(self._outputs.values())) or (self._final == 0 and not self.has_output)

    def delivered(self, text: str) -> None:
        """One event's worth of output went to the client."""
        self.events += 1
        self._bytes += len(text)
        if not self._latest and self._bytes < _TEXT_KEPT:
            self.text.append(text)

    def running(self, index: int, raw: msgspec.Raw) -> None:
        """Usage on an event of choice `index`: cumulative for that choice, so only the last is ever decoded."""
        self._latest[index] = raw

    def final(self, raw: msgspec.Raw) -> None:
        """Usage of the whole request. When sent twice, the larger counts: it is cumulative."""
        usage = self._read(raw)
        if usage is not None and usage.completion_tokens is not None:
            self._final = max(self._final or 0, usage.completion_tokens)

    def timings(self, index: int, timings: Timings) -> None:
        self._latest[index] = None
        self._note_prompt(timings.prompt_n + timings.cache_n, timings.cache_n)
        self._outputs[index] = max(self._outputs.get(index, 0), timings.predicted_n)

    def counts(self, *, prompt_estimate: int, most_output: int, counted: int | None, bytes_per_token: float) -> Counts:
        """The counts as they stand.

        prompt_estimate: for an upstream that never said. most_output: n x max_tokens, the bound of what it may claim.
        counted: the delivered text by the engine's tokenizer, if it was asked. bytes_per_token: the last resort.
        """
        self._read_latest()
        source = "estimated" if self._lied else "reported"
        prompt = self._prompt
        if not prompt:  # zero is no prompt either
            prompt, source = prompt_estimate, "estimated"
        if self.is_reported:
            output = max(self._final or 0, sum(self._outputs.values()))
            if output > max(most_output, self.events):
                output, source = max(most_output, self.events), "estimated"
        elif counted is not None:
            output, source = counted, "counted" if self._prompt else "estimated"
        else:
            output, source = self._guess(bytes_per_token), "estimated"
        return Counts(prompt, min(self._cached, prompt), output, min(self._reasoning, output), source)

    def _read_latest(self) -> None:
        for index, raw in self._latest.items():
            usage = None if raw is None else self._read(raw)
            self._latest[index] = None
            if usage is not None and usage.completion_tokens is not None:
                self._outputs[index] = max(self._outputs.get(index, 0), usage.completion_tokens)

    def _guess(self, bytes_per_token: float) -> int:
        if bytes_per_token <= 0:  # an engine that streams a token an event
            return self.events
        return max(self.events, round(self._bytes / bytes_per_token))

    def _read(self, raw: msgspec.Raw) -> Usage | None:
        try:
            usage = _usage.decode(raw)
        except msgspec.DecodeError:
            self._lied = True
            return None
        cached = usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details else None
        if usage.prompt_tokens is not None:
            self._note_prompt(usage.prompt_tokens, cached or 0)
        if usage.completion_tokens is not None:
            if usage.completion_tokens < 0 or (usage.completion_tokens == 0 and self.has_output):
                self._lied = True
                return None
            usage.completion_tokens = min(usage.completion_tokens, _MOST)
        details = usage.completion_tokens_details
        reasoning = usage.reasoning_tokens or (details.reasoning_tokens if details else None) or 0
        self._reasoning = max(self._reasoning, min(reasoning, _MOST))
        return usage

    def _note_prompt(self, prompt: int, cached: int) -> None:
        if prompt < 0 or not 0 <= cached <= prompt or prompt > _MOST or (prompt == 0 and self.has_output):
            self._lied = True
        if prompt > 0:
            self._prompt = max(self._prompt or 0, min(prompt, _MOST))
            self._cached = max(self._cached, min(max(0, cached), self._prompt))


def as_openai(counts: Counts) -> dict[str, Any]:
    """The usage object of an answer: what the client sees is what is billed."""
    return {
        "prompt_tokens": counts.input_tokens,
        "completion_tokens": counts.output_tokens,
        "total_tokens": counts.input_tokens + counts.output_tokens,
        "prompt_tokens_details": {"cached_tokens": counts.cached_input_tokens},
        "completion_tokens_details": {"reasoning_tokens": counts.reasoning_tokens},
    }
