"""What a request has to be charged, from what its upstream sent: worked out here, with no code of the product's."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from headrace.tests.chaos.asks import Ask

RATES = (Decimal("1.1"), Decimal("0.275"), Decimal("4.4"))
LATER_RATES = (Decimal("2.3"), Decimal("0.7"), Decimal("7.9"))
_SAID = {"asked", "continuous", "twice", "cached_over_prompt", "string"}  # while it runs
# How a client heard of an end that its gateway decided: all that was delivered until then, it has.
_HEARD = {"lease_lost", "upstream_timeout", "upstream_disconnected", "upstream_error", "no_capacity"}
_SAID_AT_THE_END = _SAID | {"final", "finish"}


@dataclass
class Prices:
    """RATES, and from `changed_at` on LATER_RATES: by the time of admission."""

    changed_at: datetime | None = None

    def is_later(self, admitted_at: datetime) -> bool:
        return self.changed_at is not None and admitted_at >= self.changed_at

    def cost(self, admitted_at: datetime, tokens: tuple[int, int, int]) -> Decimal:
        return cost(LATER_RATES if self.is_later(admitted_at) else RATES, *tokens)


def cost(rates: tuple[Decimal, Decimal, Decimal], input_tokens: int, cached: int, output: int) -> Decimal:
    uncached_rate, cached_rate, output_rate = rates
    return ((input_tokens - cached) * uncached_rate + cached * cached_rate + output * output_rate) / 10**6


@dataclass(frozen=True)
class Expected:
    """Bounds of what is charged, both of them allowed; of what ended plainly they are one and the same."""

    least: tuple[int, int, int]
    most: tuple[int, int, int]

    def admits(self, charged: tuple[int, int, int]) -> bool:
        return all(low <= value <= high for low, value, high in zip(self.least, charged, self.most, strict=True))


NOTHING = Expected((0, 0, 0), (0, 0, 0))


def expected(
    ask: Ask, status: str, received: int, end: str, entry: dict[str, Any] | None, *, is_counted: bool = False
) -> Expected:
    """Input, cached and output tokens of one that ended as `status`; its client saw `received` events and, if it was
    still there, `end`; `entry` is the upstream's own log of it. is_counted: by the engine's tokenizer, in whole or in
    part."""
    if not ask.stream and (status in {"reaped", "abandoned"} or end == "lease_lost"):
        return NOTHING  # nobody received it, and whoever asks again pays for that
    # No token is less than a byte.
    prompt = max(ask.script["prompt_tokens"], len(ask.content) + 64)
    if status == "cancelled" and not ask.stream and (entry is None or ask.is_refused):
        return Expected((0, 0, 0), (prompt, 0, 0))  # nobody said what it took: its prompt is charged, as estimated
    if entry is None or ask.is_refused:
        return NOTHING
    broken = ask.breaks_after
    if status == "ok":
        assert broken is None or broken > ask.script["tokens"], "it broke off, and is recorded as whole"
        return _exact(ask, ask.script["tokens"], _SAID_AT_THE_END, is_counted)
    if status in {"error", "incomplete"} and broken is not None and not entry["client_left"]:
        is_told = ask.script["usage"] in _SAID
        if ask.stream and end in _HEARD and (is_told or ask.script.get("drop") == "reset"):
            broken = received  # a reset takes along what had come and was not read yet
        if ask.stream:
            right = _exact(ask, broken, _SAID, is_counted) if broken else NOTHING
            # Where nobody told, an event is a token as well, if the engine's tokenizer was not asked in time.
            return right if is_told else Expected((*right.least[:2], min(broken, right.least[2])), right.most)
        if entry["how"] != "aborted":
            return NOTHING  # nothing of it reached the client
        if broken:  # the gateway's patience ended: it had the engine stop, and was told what it had made
            return _exact(ask, broken, _SAID_AT_THE_END, is_counted)
    # It was given up, by its client or its gateway, between two events: what it used lies between what the client had
    # and what the engine had made. Where nobody told, text is counted or estimated.
    made = int(entry["tokens_generated"])
    least, most = received if status == "cancelled" else 0, 4 * made + 8
    if ask.stream and ask.script["usage"] in _SAID and end != "left":
        # No more than its client has; and no less, but where its process died: that had told Redis less.
        least, most = received if end in _HEARD else least, received
    return Expected((0, 0, min(least, made)), (prompt, ask.script["prompt_tokens"], most))


def _exact(ask: Ask, tokens: int, said: set[str], is_counted: bool) -> Expected:
    usage, prompt = ask.script["usage"], ask.script["prompt_tokens"]
    # By the engine's tokenizer, as the gateway writes the message: escapes may make it a little longer.
    about = ask.counted_prompt
    fewest, most = about * 98 // 100, about * 102 // 100 + 1
    if usage == "partial" or (usage in said and is_counted):
        # One that was counted to fit the rest of a hard budget is charged no more than that, whatever is told later.
        fewest, most = min(prompt, fewest), max(prompt, most)
    if usage in said:
        cached = prompt if usage == "cached_over_prompt" else ask.script["cached_tokens"]
        if is_counted:
            return Expected((fewest, 0, tokens), (most, cached, tokens))
        return Expected((prompt, cached, tokens), (prompt, cached, tokens))
    counted = -(-len("".join(f"tok{number} " for number in range(tokens))) // 4)
    if usage == "huge":
        # What is told of the cache can be true; more than the prompt counts as all of it, or not at all.
        cached = ask.script["cached_tokens"]
        return Expected((fewest, cached if cached <= fewest else 0, counted), (most, min(cached, most), counted))
    return Expected((fewest, 0, counted), (most, ask.script["cached_tokens"] if usage == "partial" else 0, counted))
