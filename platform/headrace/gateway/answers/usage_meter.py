"""Counting what a request used while it runs, from whatever the upstream says, and distrusting it.

Trust, in this order: the final usage; the running usage on events (per choice: the last of each, outputs summed, the
prompt once); the engine's tokenizer over prompt and delivered text; one token an event where the engine streams so;
bytes. A number that cannot be true (negative, none beside content, more than was sent or allowed) counts as not said,
more cached than prompt as all of it, and the record's source tells. Nobody is billed more than was asked for: what an
upstream gives or tells beyond it is its own fault, and is counted as an overrun.
"""

from typing import Any

import msgspec

from engines.errors import BadAnswer
from headrace.gateway.answers.delivered_output import NO_TEXT, SPARE_EVENTS, USUAL_BYTES, DeliveredOutput
from headrace.gateway.answers.reported_usage import timings_of, usage_of

__all__ = ["NO_TEXT", "Counts", "UsageMeter", "as_openai"]


class Counts(msgspec.Struct):
    """What is billed. source: reported, counted or estimated."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    source: str = "reported"


_RANK = {"reported": 0, "counted": 1, "estimated": 2}
# Of prompts that much is left a token: they hold what no model reads as such, like base64 and tables of one character.
_MOST_PROMPT_BYTES = 1024
# A running count that is as its first is one of each event alone, where so many times more came.
_MUCH_MORE = 4


class UsageMeter:
    """The running count of one attempt.

    text_bytes: of the prompt, which has a token for each 1,024 at least. most_prompt: no more prompt tokens than this
    are billed, whoever counted them; what an upstream tells beyond it counts as not said. most_output: n x
    max_tokens, what was allowed, and the most that is billed. overrun: the classes of tokens, input and output, of
    which the upstream told or gave more. sources: of the input's and the output's last counts.
    """

    __slots__ = (
        "_cached", "_delivered", "_final", "_firsts", "_has_cached", "_has_running", "_is_bounded", "_latest",
        "_least_prompt", "_most_events", "_most_output", "_most_prompt", "_outputs", "_prompt", "_reasoning", "_torn",
        "overrun", "sources",
    )  # fmt: skip

    def __init__(self, *, most_prompt: int, most_output: int, text_bytes: int = 0) -> None:
        self._most_prompt, self._most_output = most_prompt, most_output
        self._least_prompt = min(most_prompt, text_bytes // _MOST_PROMPT_BYTES)
        self._most_events = most_output + most_output // 4 + SPARE_EVENTS
        self._prompt: int | None = None
        self._cached = 0
        self._has_cached = False
        self._reasoning: dict[int, int] = {}  # by choice; of all of them under -1
        self._outputs: dict[int, int] = {}
        self._firsts: dict[int, int] = {}  # of each choice's running counts the first
        self._latest: dict[int, msgspec.Raw | None] = {}
        self._final: int | None = None
        self._has_running = False
        self._torn: set[int] = set()  # choices whose last word is not credible: those before it were not kept
        self._is_bounded = False
        self._delivered = DeliveredOutput()
        self.overrun: set[str] = set()
        self.sources = ("reported", "reported")  # of the input's and the output's counts

    @property
    def events(self) -> int:
        """How many events brought output."""
        return self._delivered.events

    @property
    def has_output(self) -> bool:
        return self._delivered.events > 0

    @property
    def has_prompt(self) -> bool:
        """Whether the upstream has counted the prompt, credibly."""
        self._read_latest()
        return self._prompt is not None

    @property
    def has_cached(self) -> bool:
        """Whether the upstream has said how much of the prompt was in its cache."""
        self._read_latest()
        return self._has_cached

    @property
    def is_reported(self) -> bool:
        """Whether the upstream has counted the output itself, credibly and all of it."""
        self._read_latest()
        is_running = self._has_running and not self._torn
        is_told = bool(self._final or is_running) or (self._final == 0 and not self.has_output)
        if not is_told or self._reported() < self._delivered.least(self._most_output):
            return False
        return not self._delivered.after_told()[0]

    @property
    def texts(self) -> list[str] | None:
        """What was delivered, choice by choice, for whoever can count it; None where it was too long to keep, or seemed
        to be counted."""
        return self._delivered.texts

    def delivered(self, text: str, index: int = 0) -> None:
        """One event's worth of output of choice `index` goes to the client. Raises BadAnswer once it is far more than
        was asked for."""
        delivered = self._delivered
        delivered.add(text, index)
        if delivered.events > self._most_events and delivered.bytes > USUAL_BYTES * self._most_events:
            self.overrun.add("output")
            raise BadAnswer("more output than was asked for")

    def running(self, index: int, raw: msgspec.Raw) -> None:
        """Usage on an event of choice `index`: cumulative, so once one was credible only the last is ever decoded."""
        if self._outputs.get(index) and self._prompt is not None:
            self._latest[index] = raw
            self._delivered.note_told(index)
        elif self._take(index, raw):
            self._delivered.note_told(index)

    def final(self, raw: msgspec.Raw) -> None:
        """Usage of the whole request. When sent twice, the larger counts: it is cumulative."""
        output = self._read(-1, raw)
        if output is not None:
            self._final = max(self._final or 0, output)
            self._delivered.note_told(None)

    def timings(self, index: int, raw: msgspec.Raw) -> None:
        """llama.cpp's running counts of choice `index`."""
        timings = timings_of(raw)
        if timings is None:
            return
        self._has_cached = True
        self._note_prompt(timings.prompt_n + timings.cache_n, timings.cache_n)
        if self._is_credible(timings.predicted_n):
            self._note_output(index, timings.predicted_n)
            self._delivered.note_told(index)

    def counts(
        self, *, prompt_estimate: int, counted_prompt: int | None, counted: int | None, bytes_per_token: float
    ) -> Counts:
        """The counts as they stand.

        counted_prompt, counted: prompt and delivered text by the engine's tokenizer, if it was asked. prompt_estimate,
        bytes_per_token: the last resort; 0 bytes for an engine that streams a token an event.
        """
        self._read_latest()
        prompt, source = prompt_estimate, "estimated"
        if self._prompt is not None:
            prompt, source = self._prompt, "estimated" if self._is_bounded else "reported"
        elif counted_prompt:  # none at all is no count
            prompt, source = counted_prompt, "counted"
        if prompt > self._most_prompt:
            prompt, source = self._most_prompt, "estimated"
        output, how = self._guess(bytes_per_token), "estimated"
        if self.is_reported:
            output, how = self._reported(), "reported"
        elif counted and counted + self._delivered.without_text >= self._delivered.least(self._most_output):
            output, how = counted + self._delivered.without_text, "counted"
        if output > self._most_output:
            output, how = self._most_output, "estimated"
        reasoning = max(self._reasoning.get(-1, 0), sum(self._reasoning.values()) - self._reasoning.get(-1, 0))
        self.sources = (source, how)
        source = max(source, how, key=_RANK.__getitem__)
        return Counts(prompt, min(self._cached, prompt), output, min(reasoning, output), source)

    def _reported(self) -> int:
        """Some tell the running use of the whole request on each choice's events: such figures are not summed."""
        running = self._outputs.values()
        if self._final and self._final >= max(running, default=0):
            return self._final
        return max(self._final or 0, sum(running))

    def _read_latest(self) -> None:
        for index, raw in self._latest.items():
            if raw is not None:
                self._latest[index] = None
                if not self._take(index, raw):
                    self._torn.add(index)

    def _take(self, index: int, raw: msgspec.Raw) -> bool:
        """Whether it told the output, credibly."""
        output = self._read(index, raw)
        if output is None or self._is_of_one_event(index, output):
            return False
        self._note_output(index, output)
        return True

    def _is_of_one_event(self, index: int, output: int) -> bool:
        """Whether a running count is no sum: as small as the first, after much more output."""
        is_first = output <= self._firsts.setdefault(index, output) if output else False
        return is_first and self._delivered.has_grown(index, _MUCH_MORE * output)

    def _guess(self, bytes_per_token: float) -> int:
        told, guess = sum(self._outputs.values()), self._delivered.guess(bytes_per_token)
        if self._has_running and not self._torn and told >= self._delivered.least(self._most_output):
            return max(told + self._delivered.guess_after_told(told, bytes_per_token), self._final or 0)
        return max(guess, told, self._final or 0)

    def _read(self, index: int, raw: msgspec.Raw) -> int | None:
        """The output tokens a usage object tells; None where it tells none that can be true."""
        usage = usage_of(raw)
        if usage is None:
            return None
        self._has_cached = self._has_cached or usage.cached is not None
        if usage.prompt is None or not self._note_prompt(usage.prompt, usage.cached or 0):
            self._note_cached(usage.cached or 0)
        if usage.output is None:
            return None
        output = usage.output + usage.apart
        if not self._is_credible(output):
            return None
        self._reasoning[index] = max(self._reasoning.get(index, 0), usage.reasoning, usage.apart)
        return output

    def _is_credible(self, output: int) -> bool:
        if output > self._most_output:
            self.overrun.add("output")
        is_possible = 0 <= output <= max(self._most_output, self.events)
        return is_possible and (output > 0 or not self.has_output)

    def _note_prompt(self, prompt: int, cached: int) -> bool:
        """Take a prompt's count, if it can be true; whether it can."""
        if prompt > self._most_prompt:
            self.overrun.add("input")
        if not max(1, self._least_prompt) <= prompt <= self._most_prompt:
            return False
        self._prompt = max(self._prompt or 0, prompt)
        self._is_bounded = self._is_bounded or not 0 <= cached <= prompt
        self._cached = max(self._cached, min(max(0, cached), prompt))
        return True

    def _note_cached(self, cached: int) -> None:
        """What was cached of a prompt that is counted elsewhere."""
        if 0 < cached <= self._most_prompt:
            self._cached = max(self._cached, cached)

    def _note_output(self, index: int, output: int) -> None:
        self._outputs[index] = max(self._outputs.get(index, 0), output)
        if output > 0 and not self._has_running:
            self._has_running = True
            self._delivered.drop_text()
        self._torn.discard(index)


def as_openai(counts: Counts) -> dict[str, Any]:
    """The usage object of an answer: what the client sees is what is billed."""
    return {
        "prompt_tokens": counts.input_tokens,
        "completion_tokens": counts.output_tokens,
        "total_tokens": counts.input_tokens + counts.output_tokens,
        "prompt_tokens_details": {"cached_tokens": counts.cached_input_tokens},
        "completion_tokens_details": {"reasoning_tokens": counts.reasoning_tokens},
    }
