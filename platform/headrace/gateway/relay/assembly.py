"""A whole answer put together from a stream, so that what was generated is known when its client leaves."""

import time
from typing import Any

import msgspec

from engines.answer import Answer
from engines.errors import BadAnswer
from engines.sse import EventTooLarge, Framer
from headrace.gateway.answers import chunks
from headrace.gateway.answers.extra_fields import Beside
from headrace.gateway.answers.streamed_choices import StreamedChoices
from headrace.gateway.answers.whole_choices import WholeChoices, normalise
from headrace.gateway.state.request_state import RequestState

# After [DONE] there are only the last bytes of HTTP; read, they let the connection serve the next request.
_LAST_BYTES_SECONDS = 0.05
_LAST_BYTES = 64 * 1024


_TEXTS = ("content", "reasoning_content", "reasoning", "refusal")
_OWN = frozenset({*_TEXTS, "role", "tool_calls", "annotations", "function_call", "audio"})
_BESIDE = frozenset({"index", "delta", "message", "logprobs", "finish_reason", "usage"})
# Which texts of a vendor's field are said once, and not piece by piece.
_CONSTANT = frozenset({"id", "type", "format", "name", "role", "model", "provider", "status"})


def _merged(known: Any, value: Any, name: str) -> Any:
    """A field of a vendor's, put together with what more of it comes: texts and lists go on, objects of a list by their
    index where they have one; of all else the last is true."""
    if value is None or type(known) is not type(value):
        return known if value is None else value
    if isinstance(value, str):
        return value if name in _CONSTANT else known + value
    if isinstance(value, dict):
        return known | {inner: _merged(known.get(inner), each, inner) for inner, each in value.items()}
    if not isinstance(value, list):
        return value
    made = list(known)
    for each in value:
        index = each.get("index") if isinstance(each, dict) else None
        place = next((p for p, one in enumerate(made) if index is not None and one.get("index") == index), None)
        if place is None:
            made.append(each)
        else:
            made[place] = _merged(made[place], each, name)
    return made


class _Parts:
    """One choice as far as it has come."""

    def __init__(self) -> None:
        self.texts: dict[str, list[str]] = {}
        self.calls: dict[int, dict[str, Any]] = {}
        self.logprobs: dict[str, list[Any]] = {}
        self.more: dict[str, Any] = {}
        self.beside: dict[str, Any] = {}
        self.finish_reason: str | None = None

    def add(self, choice: dict[str, Any]) -> None:
        delta = choice.get("delta") or {}
        for name in _TEXTS:
            if isinstance(text := delta.get(name), str):
                self.texts.setdefault(name, []).append(text)
        for name, value in delta.items():
            if name not in _OWN:
                self.more[name] = _merged(self.more.get(name), value, name)
        for call in delta.get("tool_calls") or ():
            self._add_call(call)
        self.beside |= {name: each for name, each in choice.items() if name not in _BESIDE and each is not None}
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
        return {
            **self.beside,
            "index": index,
            "message": message,
            "logprobs": logprobs,
            "finish_reason": self.finish_reason,
        }


async def assemble(answer: Answer, request: RequestState, beside: Beside) -> WholeChoices:
    """The choices of a streamed `answer`, counted on the request's meter as they come; `beside` takes what is said
    beside them. Raises UpstreamError."""
    framer, parts, choices = Framer(), dict[int, _Parts](), StreamedChoices(request.operation)
    try:
        is_over = False
        while not is_over and (piece := await answer.read()):
            is_over = any(_take(data, request, parts, choices, beside) for data in framer.feed(piece))
        if is_over:
            await answer.drained(_LAST_BYTES_SECONDS, _LAST_BYTES)
        else:
            for data in framer.end():
                _take(data, request, parts, choices, beside)
    except (EventTooLarge, msgspec.DecodeError, RecursionError) as error:
        raise BadAnswer("an event that is not an operation's") from error
    if choices.failure is not None:
        request.finish_reason = choices.finish_word
        raise choices.failure
    made = normalise([parts[index].as_choice(index) for index in sorted(parts)])
    # Its words are those of the schema by now; the engine's own is what goes on record.
    return WholeChoices(made.choices, made.raw, [word and (choices.finish_word or word) for word in made.words])


def _take(data: bytes, request: RequestState, parts: dict[int, _Parts], read: StreamedChoices, beside: Beside) -> bool:
    """Take one event; whether it was the last."""
    if chunks.is_done(data):
        return True
    if chunks.says_nothing(data):
        return False
    chunk = chunks.read(data)
    is_begun = request.has_first_byte
    chunks.raise_failure(chunk, data)
    choices, raw = read.read(bytes(chunk.choices), is_begun=is_begun)
    chunks.count(chunk, data, choices, request.meter)
    beside.take(chunk)
    wholes = msgspec.json.decode(raw) or ()
    texts = chunks.outputs(choices, chunk, is_begun=is_begun)
    for choice, text, whole in zip(choices, texts, wholes, strict=True):
        if text:
            request.meter.delivered(text, choice.index)
        if (text or choice.finish_reason) and not request.has_first_byte:
            request.start_answer(time.monotonic())
        request.last_byte_at = request.last_event_at = time.monotonic()
        parts.setdefault(choice.index, _Parts()).add(whole)
    return False
