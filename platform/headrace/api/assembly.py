"""A whole answer put together from a stream, for engines that notice a hang-up only while they stream."""

import time
from typing import Any

import msgspec

from engines.answer import Answer
from engines.errors import BadAnswer
from engines.refusals import error_event
from engines.sse import EventTooLarge, Framer
from headrace.api import chunks
from headrace.api.attempt import no_stream
from headrace.api.exchange import Exchange
from headrace.api.raw import is_empty
from headrace.api.tool_calls import Numbering, passable

# After [DONE] there are only the last bytes of HTTP; read, they let the connection serve the next request.
_LAST_BYTES_SECONDS = 0.05
_LAST_BYTES = 64 * 1024


class _Parts:
    """One choice as far as it has come."""

    def __init__(self) -> None:
        self.texts: dict[str, list[str]] = {}
        self.calls: dict[int, dict[str, Any]] = {}
        self.logprobs: list[Any] = []
        self.finish_reason: str | None = None

    def add(self, choice: dict[str, Any]) -> None:
        delta = choice.get("delta") or {}
        for name in ("content", "reasoning_content", "reasoning", "refusal"):
            if isinstance(text := delta.get(name), str):
                self.texts.setdefault(name, []).append(text)
        for call in delta.get("tool_calls") or ():
            self._add_call(call)
        logprobs = choice.get("logprobs")
        if isinstance(logprobs, dict) and isinstance(logprobs.get("content"), list):
            self.logprobs += logprobs["content"]
        self.finish_reason = choice.get("finish_reason") or self.finish_reason

    def _add_call(self, call: dict[str, Any]) -> None:
        known = self.calls.setdefault(call["index"], {"type": "function", "function": {"arguments": ""}})
        if call.get("id"):
            known["id"] = call["id"]
        function = call.get("function") or {}
        if function.get("name"):
            known["function"]["name"] = function["name"]
        known["function"]["arguments"] += function.get("arguments") or ""

    def as_choice(self, index: int) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": None if self.calls else ""}
        message |= {name: "".join(texts) for name, texts in self.texts.items()}
        if self.calls:
            message["tool_calls"] = [self.calls[number] for number in sorted(self.calls)]
        logprobs = {"content": self.logprobs} if self.logprobs else None
        return {"index": index, "message": message, "logprobs": logprobs, "finish_reason": self.finish_reason}


async def assemble(answer: Answer, exchange: Exchange) -> list[dict[str, Any]]:
    """The choices of a streamed `answer`, counted on the exchange's meter as they come. Raises UpstreamError."""
    if not answer.is_event_stream:
        raise await no_stream(answer)
    framer, parts, numbering = Framer(), dict[int, _Parts](), Numbering()
    try:
        is_over = False
        while not is_over and (piece := await answer.read()):
            is_over = any(_take(data, exchange, parts, numbering) for data in framer.feed(piece))
        if is_over:
            await answer.drained(_LAST_BYTES_SECONDS, _LAST_BYTES)
        else:
            for data in framer.end():
                _take(data, exchange, parts, numbering)
    except (EventTooLarge, msgspec.DecodeError, RecursionError) as error:
        raise BadAnswer("an event that is not a chat's") from error
    return [parts[index].as_choice(index) for index in sorted(parts)]


def _take(data: bytes, exchange: Exchange, parts: dict[int, _Parts], numbering: Numbering) -> bool:
    """Take one event; whether it was the last."""
    if chunks.is_done(data):
        return True
    if not data or data[:1] == b":":
        return False
    chunk = chunks.read(data)
    if chunk.object == "error" or not is_empty(chunk.error):
        raise error_event(data)
    choices, raw = chunks.read_choices(chunk, is_begun=exchange.has_first_byte)
    chunks.count(chunk, choices, exchange.meter)
    wholes = msgspec.json.decode(passable(raw, numbering)) or ()
    for choice, whole in zip(choices, wholes, strict=True):
        if text := chunks.substance(choice):
            exchange.meter.delivered(text)
        if (text or choice.finish_reason) and not exchange.has_first_byte:
            exchange.start_answer(time.monotonic())
        exchange.last_byte_at = exchange.last_event_at = time.monotonic()
        parts.setdefault(choice.index, _Parts()).add(whole)
    return False
