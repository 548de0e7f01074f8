"""The messages of a chat: their shape, and which media an engine may be made to open.

Engines open `file://`, plain paths and any address found in an image part, so a part is rebuilt from checked fields:
media come as `data:` addresses or from hosts an operator listed (HEADRACE_MEDIA_HOSTS).
"""

import binascii
import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, Meta, UnsetType

Name = Annotated[str, Meta(max_length=256)]


class _Part(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """cache_control: where clients of other APIs want a prompt cached. Engines cache as they will: dropped."""

    cache_control: Any = None


class TextPart(_Part, tag="text", kw_only=True):
    text: str


class RefusalPart(_Part, tag="refusal", kw_only=True):
    refusal: str


class Media(msgspec.Struct, forbid_unknown_fields=True):
    url: str
    detail: Literal["auto", "low", "high", "original"] | UnsetType | None = UNSET


class ImagePart(_Part, tag="image_url", kw_only=True):
    image_url: Media


class VideoPart(_Part, tag="video_url", kw_only=True):
    video_url: Media


class Audio(msgspec.Struct, forbid_unknown_fields=True):
    data: str
    format: Literal["wav", "mp3", "flac", "ogg", "m4a", "webm"]


class AudioPart(_Part, tag="input_audio", kw_only=True):
    input_audio: Audio


Part = TextPart | ImagePart | VideoPart | AudioPart | RefusalPart


class FunctionCall(msgspec.Struct):
    name: Name
    arguments: str | None = None


class ToolCall(msgspec.Struct):
    """extra_content: what Google's models sign their calls with, and want back with them."""

    function: FunctionCall
    id: str = ""
    type: Literal["function"] = "function"
    index: int | UnsetType = UNSET
    extra_content: msgspec.Raw | UnsetType = UNSET


class Message(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One message. What clients echo of an earlier answer goes on where it is prompt: refusal, and reasoning under
    SGLang's name or vLLM's; and extra_content, as in a ToolCall. Content of null stays null: of a message with neither
    content nor tool_calls engines say that it is none. The rest (annotations, audio, reasoning_details, what
    LiteLLM and OpenAI's SDK add) is taken and dropped, as is cache_control.
    """

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[Part] | UnsetType | None = UNSET
    name: Name | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    annotations: Any = None
    audio: Any = None
    reasoning_details: Any = None
    cache_control: Any = None
    provider_specific_fields: Any = None
    thinking_blocks: Any = None
    parsed: Any = None
    function_call: None = None
    extra_content: msgspec.Raw | UnsetType = UNSET


Messages = Annotated[list[Message], Meta(min_length=1, max_length=20_000)]

# What one media part is taken to cost in tokens, when limits are checked ahead: engines tile images (OpenAI's own
# tables: 85 for low detail, about 1,100 for a 1024x1024 image in high); the record has what the engine counted.
_IMAGE_TOKENS = {"low": 85}
_IMAGE_DEFAULT = 1105
_VIDEO_TOKENS = 8000
_AUDIO_BYTES_PER_TOKEN = 4000
_MESSAGE_TOKENS = 4
_URL = re.compile(r"[!-~]+")


class BadMedia(ValueError):
    """A media address the engine must not open; the message says why."""


class Content(msgspec.Struct):
    """The messages as they go to the engine, and their size: bytes of text, and tokens that are not text."""

    messages: list[Message]
    text_bytes: int
    other_tokens: int
    modalities: frozenset[str]

    @property
    def is_text(self) -> bool:
        """Whether it is nothing but text, so that its bytes say how many tokens it can be at most."""
        return self.modalities == {"text"}


def check(messages: list[Message], media_hosts: list[str]) -> Content:
    """Check every part, drop what only echoes, and measure. Raises BadMedia with the part's place."""
    text_bytes, other = 0, 3
    kinds = {"text"}
    for position, message in enumerate(messages):
        message.annotations = message.audio = message.reasoning_details = message.cache_control = None
        message.provider_specific_fields = message.thinking_blocks = message.parsed = None
        message.tool_calls = message.tool_calls or None  # an empty list says nothing, and some upstreams refuse it
        if message.content is UNSET and message.tool_calls is None and message.role == "assistant":
            message.content = None
        other += _MESSAGE_TOKENS
        reasoning = (message.reasoning_content, message.reasoning)
        for text in (*reasoning, message.refusal, message.name, message.tool_call_id):
            text_bytes += _size(text) if text else 0
        text_bytes += _extra(message)
        if message.role == "developer":
            message.role = "system"  # it means the same to OpenAI; many templates of open models pass over the other
        for call in message.tool_calls or ():
            # As a call without arguments is streamed. Engines read it as JSON, and fail.
            call.function.arguments = (call.function.arguments or "").strip() or "{}"
            text_bytes += _size(call.function.arguments) + _size(call.function.name) + _size(call.id) + _extra(call)
        if isinstance(message.content, str):
            text_bytes += _size(message.content)
            continue
        for place, part in enumerate(message.content or ()):
            part.cache_control = None
            match part:
                case TextPart():
                    text_bytes += _size(part.text)
                case RefusalPart():
                    text_bytes += _size(part.refusal)
                case ImagePart():
                    _allowed(part.image_url.url, "image", media_hosts, f"messages[{position}].content[{place}]")
                    other += _IMAGE_TOKENS.get(str(part.image_url.detail), _IMAGE_DEFAULT)
                    kinds.add("image")
                case VideoPart():
                    _allowed(part.video_url.url, "video", media_hosts, f"messages[{position}].content[{place}]")
                    other += _VIDEO_TOKENS
                    kinds.add("video")
                case AudioPart():
                    _audible(part.input_audio.data, f"messages[{position}].content[{place}]")
                    other += 1 + len(part.input_audio.data) // _AUDIO_BYTES_PER_TOKEN
                    kinds.add("audio")
    return Content(messages, text_bytes, other, frozenset(kinds))


def _size(text: str) -> int:
    """UTF-8 length, without encoding where the string is ASCII, as most are."""
    return len(text) if text.isascii() else len(text.encode())


def _extra(of: Message | ToolCall) -> int:
    return 0 if of.extra_content is UNSET else len(bytes(of.extra_content))


def _allowed(url: str, kind: str, hosts: list[str], place: str) -> None:
    if url.startswith(f"data:{kind}/") and ";base64," in url[:128]:
        return
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise BadMedia(f"{place}: not an address") from None
    # urlsplit passes over spaces and controls that an engine may read otherwise.
    if not _URL.fullmatch(url) or parts.scheme not in {"http", "https"} or not host or parts.username is not None:
        raise BadMedia(f"{place}: only data:{kind}/...;base64 and https addresses of listed hosts may be sent")
    if host not in hosts:
        raise BadMedia(f"{place}: the host of this address is not listed by the operator")


def _audible(data: str, place: str) -> None:
    """Sound is base64 and no name of a file: the shortest WAV is a head of 44 bytes."""
    try:
        size = len(binascii.a2b_base64(data, strict_mode=True))
    except ValueError:
        raise BadMedia(f"{place}: the data of a sound is base64") from None
    if size < 44:
        raise BadMedia(f"{place}: too short for a sound")
