"""A whole answer put together from a stream, so that what was generated is known when its client leaves."""

import time
from typing import Any

import msgspec

from engines.answer import Answer
from engines.errors import BadAnswer
from engines.refusals import error_event
from engines.sse import EventTooLarge, Framer
from headrace.api import chunks
from headrace.api.beside import Beside
from headrace.api.exchange import Exchange
from headrace.api.raw import is_empty
from headrace.api.streamed_choices import StreamedChoices, substance
from headrace.api.whole_choices import WholeChoices, normalise

# After [DONE] there are only the last bytes of HTTP; read, they let the connection serve the next request.
_LAST_BYTES_SECONDS = 0.05
_LAST_BYTES = 64 * 1024


class _Parts:
    """One choice as far as it has come."""

    def __init__(self) -> None:
        self.texts: dict[str, list[str]] = {}
        self.calls: dict[int, dict[str, Any]] = {}
        self.logprobs: dict[str, list[Any]] = {}
        self.more: dict[str, Any] = {}
        self.finish_reason: str | None = None

    def add(self, choice: dict[str, Any]) -> None:
        delta = choice.get("delta") or {}
        for name in ("content", "reasoning_content", "reasoning", "refusal"):
            if isinstance(text := delta.get(name), str):
                self.texts.setdefault(name, []).append(text)
        for call in delta.get("tool_calls") or ():
            self._add_call(call)
        for name, tokens in (choice.get("logprobs") or {}).items():
            if isinstance(tokens, list):
                self.logprobs.setdefault(name, []).extend(tokens)
        if delta.get("annotations"):
            self.more.setdefault("annotations", []).extend(delta["annotations"])
        self.finish_reason = choice.get("finish_reason") or self.finish_reason

    def _add_call(self, call: dict[str, Any]) -> None:
        known = self.calls.setdefault(call["index"], {"function": {"arguments": ""}})
        function = call.get("function") or {}
        known["function"]["arguments"] += function.get("arguments") or ""
        known["function"] |= {"name": function["name"]} if function.get("name") else {}
        known |= {
            name: value for name, value in call.items() if name not in {"index", "function"} and value is not None
        }

    def as_choice(self, index: int) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": None if self.calls else ""}
        message |= {name: "".join(texts) for name, texts in self.texts.items()} | self.more
        if self.calls:
            message["tool_calls"] = [self.calls[number] for number in sorted(self.calls)]
        logprobs = self.logprobs or None
        return {"index": index, "message": message, "logprobs": logprobs, "finish_reason": self.finish_reason}


async def assemble(answer: Answer, exchange: Exchange, beside: Beside) -> WholeChoices:
    """The choices of a streamed `answer`, counted on the exchange's meter as they come; `beside` takes what is said
    beside them. Raises UpstreamError."""
    framer, parts, choices = Framer(), dict[int, _Parts](), StreamedChoices(exchange.chat)
    try:
        is_over = False
        while not is_over and (piece := await answer.read()):
            is_over = any(_take(data, exchange, parts, choices, beside) for data in framer.feed(piece))
        if is_over:
            await answer.drained(_LAST_BYTES_SECONDS, _LAST_BYTES)
        else:
            for data in framer.end():
                _take(data, exchange, parts, choices, beside)
    except (EventTooLarge, msgspec.DecodeError, RecursionError) as error:
        raise BadAnswer("an event that is not a chat's") from error
    if choices.failure is not None:
        exchange.finish_reason = choices.finish_word
        raise choices.failure
    made = normalise([parts[index].as_choice(index) for index in sorted(parts)])
    # Its words are those of the schema by now; the engine's own is what goes on record.
    return WholeChoices(made.choices, made.raw, [word and (choices.finish_word or word) for word in made.words])


def _take(data: bytes, exchange: Exchange, parts: dict[int, _Parts], read: StreamedChoices, beside: Beside) -> bool:
    """Take one event; whether it was the last."""
    if chunks.is_done(data):
        return True
    if not data or data[:1] == b":":
        return False
    chunk = chunks.read(data)
    if chunk.object == "error" or not is_empty(chunk.error):
        raise error_event(data)
    choices, raw = read.read(bytes(chunk.choices), is_begun=exchange.has_first_byte)
    chunks.count(chunk, choices, exchange.meter)
    beside.take(chunk)
    wholes = msgspec.json.decode(raw) or ()
    for choice, whole in zip(choices, wholes, strict=True):
        if text := substance(choice):
            exchange.meter.delivered(text)
        if (text or choice.finish_reason) and not exchange.has_first_byte:
            exchange.start_answer(time.monotonic())
        exchange.last_byte_at = exchange.last_event_at = time.monotonic()
        parts.setdefault(choice.index, _Parts()).add(whole)
    return False
