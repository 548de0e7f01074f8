"""The events of a chat stream: what is read of an engine's, and the bytes of ours.

Choices pass byte for byte; the frame around them is ours: id, created, model, usage. So an event costs two small
decodes and one concatenation.
"""

from typing import Any

import msgspec

from headrace.api.mending import decode
from headrace.api.raw import NULL, is_empty
from headrace.api.usage_meter import UsageMeter

DONE = b"data: [DONE]\n\n"


class Delta(msgspec.Struct):
    """What should be text comes in other forms too: `as_text`. Content that is none of these no client takes."""

    content: str | list[dict[str, Any]] | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    refusal: Any = None
    tool_calls: msgspec.Raw = NULL


class Choice(msgspec.Struct):
    """Negative, None and "" are what is not there. message: a whole answer, sent by who only plays at streaming."""

    index: int = -1
    delta: Delta | None = None
    message: Delta | None = None
    finish_reason: str | None = ""


class Chunk(msgspec.Struct):
    """An engine's event. `choices` stay raw, to be passed on; null and absent ones are empty."""

    choices: msgspec.Raw = msgspec.Raw(b"[]")
    usage: msgspec.Raw = NULL
    error: msgspec.Raw = NULL
    object: str | None = None
    timings: msgspec.Raw = NULL


class _Function(msgspec.Struct):
    arguments: str | dict[str, Any] | None = None


class _ToolCall(msgspec.Struct):
    function: _Function | None = None


# What engines end an answer with that they could not finish; no reason that OpenAI knows.
FAILURES = frozenset({"abort", "error"})
_chunk = msgspec.json.Decoder(Chunk)
_choices = msgspec.json.Decoder(list[Choice] | None)
_tool_calls = msgspec.json.Decoder(list[_ToolCall])


def is_done(data: bytes) -> bool:
    """Whether an event is the last: `[DONE]`, after which some write spaces."""
    return data[:1] == b"[" and data.rstrip() == b"[DONE]"


def read(data: bytes) -> Chunk:
    """An event's chunk. Raises msgspec.DecodeError."""
    return decode(_chunk, data)


def read_choices(chunk: Chunk, *, is_begun: bool) -> tuple[list[Choice], bytes]:
    """An event's choices, and the bytes of them that clients take. Raises msgspec.DecodeError.

    Many clients fail on a choice without index, delta or finish_reason, or with a finish_reason of "": these are
    filled; the delta with the message that is in its place, unless the answer is_begun, and the message repeats it.
    """
    choices, raw = _choices.decode(chunk.choices) or [], bytes(chunk.choices)
    for choice in choices:
        if choice.index < 0 or choice.delta is None or choice.finish_reason == "":
            return choices, _filled(choices, raw, is_begun)
    return choices, raw


def _filled(choices: list[Choice], raw: bytes, is_begun: bool) -> bytes:
    wholes = msgspec.json.decode(raw)
    for choice, whole in zip(choices, wholes, strict=True):
        message = whole.pop("message", None)
        if choice.delta is None and choice.message is not None and not is_begun:
            choice.delta, whole["delta"] = choice.message, message
        choice.index, choice.finish_reason = max(choice.index, 0), choice.finish_reason or None
        whole |= {"index": choice.index, "delta": whole.get("delta") or {}, "finish_reason": choice.finish_reason}
    return msgspec.json.encode(wholes)


def substance(choice: Choice) -> str:
    """The text an event brings: content, reasoning, refusal, a tool call's arguments. Empty: a role, or the end.

    Some send their reasoning under both names.
    """
    delta = choice.delta
    if delta is None:
        return ""
    text = as_text(delta.content)
    if more := delta.reasoning_content or delta.reasoning or delta.refusal:
        text += as_text(more)
    if not is_empty(delta.tool_calls):
        calls = _tool_calls.decode(delta.tool_calls)
        # A call's first event names the function and may have no arguments yet: it is output all the same.
        text += "".join(as_text(call.function.arguments) for call in calls if call.function) or " "
    return text


def as_text(value: Any) -> str:
    """Text as it is; as JSON what should be text and comes in parts or as an object. Nothing of false or null."""
    if not value or isinstance(value, str):
        return value or ""
    return msgspec.json.encode(value).decode()


def count(chunk: Chunk, choices: list[Choice], meter: UsageMeter) -> None:
    """Take what an event says of its use: of its choice so far, or, beside no choices, of the whole request."""
    if not is_empty(chunk.usage):
        if choices:
            meter.running(choices[0].index, chunk.usage)
        else:
            meter.final(chunk.usage)
    if not is_empty(chunk.timings):
        meter.timings(choices[0].index if choices else 0, chunk.timings)


class Frame:
    """What stands around the choices of every event of one answer."""

    def __init__(self, request_id: str, created: int, model: str, *, usage: bool) -> None:
        head = {
            "id": f"chatcmpl-{request_id}",
            "object": "chat.completion.chunk",
            "created": created,
            "model": model,
        }
        self._before = b"data: " + msgspec.json.encode(head)[:-1] + b',"choices":'
        # OpenAI sends a null usage on every event but the last, if usage was asked for.
        self._after = b',"usage":null}\n\n' if usage else b"}\n\n"

    def event(self, choices: bytes) -> bytes:
        return self._before + choices + self._after

    def usage(self, usage: dict[str, object]) -> bytes:
        return self._before + b'[],"usage":' + msgspec.json.encode(usage) + b"}\n\n"


def error_event(body: bytes) -> bytes:
    return b"data: " + body + b"\n\n"
