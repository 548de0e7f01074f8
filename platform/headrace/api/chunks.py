"""The events of a chat stream: what is read of an engine's, and the bytes of ours.

Choices pass byte for byte; the frame around them is ours: id, created, model, usage. So an event costs two small
decodes and one concatenation.
"""

import msgspec

from headrace.api.raw import NULL, is_empty
from headrace.api.usage_meter import UsageMeter

DONE = b"data: [DONE]\n\n"


class Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: msgspec.Raw = NULL


class Choice(msgspec.Struct):
    index: int = 0
    delta: Delta | None = None
    finish_reason: str | None = None


class Chunk(msgspec.Struct):
    """An engine's event. `choices` stay raw, to be passed on; null and absent ones are empty."""

    choices: msgspec.Raw = msgspec.Raw(b"[]")
    usage: msgspec.Raw = NULL
    error: msgspec.Raw = NULL
    object: str | None = None
    timings: msgspec.Raw = NULL


class _Function(msgspec.Struct):
    arguments: str | None = None


class _ToolCall(msgspec.Struct):
    function: _Function | None = None


chunk_decoder = msgspec.json.Decoder(Chunk)
choices_decoder = msgspec.json.Decoder(list[Choice] | None)
_tool_calls = msgspec.json.Decoder(list[_ToolCall])


def substance(choice: Choice) -> str:
    """The text an event brings: content, reasoning, refusal, a tool call's arguments. Empty: a role, or the end."""
    delta = choice.delta
    if delta is None:
        return ""
    text = delta.content or delta.reasoning_content or delta.reasoning or delta.refusal or ""
    if not is_empty(delta.tool_calls):
        calls = _tool_calls.decode(delta.tool_calls)
        # A call's first event names the function and may have no arguments yet: it is output all the same.
        text += "".join((call.function.arguments or "" if call.function else "") for call in calls) or " "
    return text


def count(chunk: Chunk, choices: list[Choice], meter: UsageMeter) -> None:
    """Take what an event says of its use: of its choice so far, or, beside no choices, of the whole request."""
    if not is_empty(chunk.usage):
        if choices:
            meter.running(choices[0].index, chunk.usage)
        else:
            meter.final(chunk.usage)
    if not is_empty(chunk.timings):
        meter.timings(choices[0].index if choices else 0, chunk.timings)


def passable(choices: bytes) -> bytes:
    """Choices, streamed or whole, as clients take them: on one line, `arguments` a string where engines say null."""
    if b'"arguments":null' in choices or b'"arguments": null' in choices:
        decoded = msgspec.json.decode(choices)
        for choice in decoded:
            calls = (choice.get("delta") or choice.get("message") or {}).get("tool_calls")
            for call in calls if isinstance(calls, list) else ():
                function = call.get("function") if isinstance(call, dict) else None
                if isinstance(function, dict) and function.get("arguments", "") is None:
                    function["arguments"] = ""
        return msgspec.json.encode(decoded)
    # An event sent as several data lines has line ends between its tokens, which must not reach our own line.
    return msgspec.json.format(choices, indent=-1) if b"\n" in choices else choices


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
