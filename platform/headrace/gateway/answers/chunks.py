"""The events of a chat stream: what is read of an engine's, and the bytes of ours.

Choices pass byte for byte where they are in the form that clients take (streamed_choices.py); the frame around them is
ours: id, created, model, usage. So an event costs two small decodes and one concatenation.
"""

import msgspec

from headrace.gateway.answers.failures import FailurePlaces, told_beside, told_in_choices
from headrace.gateway.answers.json_repair import decode
from headrace.gateway.answers.output import unlisted_outputs
from headrace.gateway.answers.raw_json import is_empty
from headrace.gateway.answers.schema import StreamedChoice
from headrace.gateway.answers.streamed_choices import substance
from headrace.gateway.answers.usage_locations import note_usage
from headrace.gateway.answers.usage_meter import UsageMeter

DONE = b"data: [DONE]\n\n"


class Chunk(FailurePlaces):
    """An engine's event. `choices` stay raw, to be passed on; null and absent ones are empty."""

    choices: msgspec.Raw = msgspec.Raw(b"[]")


_chunk = msgspec.json.Decoder(Chunk)
_LAST = frozenset({b"[DONE]", b'"[DONE]"'})
_NOTHING = frozenset({b"", b"null", b"[]", b"[{}]", b'""'})


def is_done(data: bytes) -> bool:
    """Whether an event is the last: `[DONE]`, which some put in quotes or spaces."""
    return data[:1] != b"{" and data.strip() in _LAST


def says_nothing(data: bytes) -> bool:
    """Whether an event is none: JSON that is empty, or a keep-alive that some providers wrap in `data:`."""
    return data[:1] != b"{" and (data[:1] == b":" or data.strip() in _NOTHING)


def read(data: bytes) -> Chunk:
    """An event's chunk. Raises msgspec.DecodeError."""
    return decode(_chunk, data)


def count(chunk: Chunk, data: bytes, choices: list[StreamedChoice], meter: UsageMeter) -> None:
    """Take what an event says of its use: of its choice so far, or, beside no choices, of the whole request."""
    index = choices[0].index if choices else None
    is_last = not choices or any(choice.finish_reason for choice in choices)
    note_usage(chunk, chunk.choices, meter, data, index=index, is_last=is_last)


def raise_failure(chunk: Chunk, data: bytes) -> None:
    """Raise the UpstreamError that an event tells, in its own form or as if nothing had happened."""
    error = told_beside(data) if chunk.may_fail or is_empty(chunk.choices) else None
    error = error or told_in_choices(bytes(chunk.choices))
    if error is not None:
        raise error


def outputs(choices: list[StreamedChoice], chunk: Chunk, *, is_begun: bool) -> list[str]:
    """What was generated for each of an event's choices; "" where it brings a role, or the end."""
    texts = [substance(choice) for choice in choices]
    if all(texts):
        return texts
    unlisted = unlisted_outputs(bytes(chunk.choices), is_begun=is_begun)
    return [text or more for text, more in zip(texts, unlisted, strict=True)] if len(unlisted) == len(texts) else texts


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

    def event(self, choices: bytes, beside: bytes = b"") -> bytes:
        """An event. beside: further fields, as JSON that begins with a comma."""
        return self._before + choices + beside + self._after

    def usage(self, usage: dict[str, object], beside: bytes = b"") -> bytes:
        return self._before + b"[]" + beside + b',"usage":' + msgspec.json.encode(usage) + b"}\n\n"


def error_event(body: bytes) -> bytes:
    return b"data: " + body + b"\n\n"
