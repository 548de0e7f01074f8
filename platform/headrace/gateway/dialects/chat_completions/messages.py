"""The messages of a chat: their shape, and which media an engine may be made to open.

Engines open `file://`, plain paths and any address found in an image part, so a part is rebuilt from checked fields:
media come as `data:` addresses or from hosts an operator listed (HEADRACE_MEDIA_HOSTS).
"""

import binascii
import re
from collections.abc import Generator
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET

from headrace.gateway.dialects.chat_completions.long_texts import Cut, rewrite
from headrace.gateway.operations.messages import (
    AudioPart,
    Content,
    ImagePart,
    Message,
    Part,
    RefusalPart,
    TextPart,
    ToolCall,
    VideoPart,
)

# What one media part is taken to cost in tokens, when limits are checked ahead: engines tile images (OpenAI's own
# tables: 85 for low detail, about 1,100 for a 1024x1024 image in high); the record has what the engine counted.
_IMAGE_TOKENS = {"low": 85}
_IMAGE_DEFAULT = 1105
_VIDEO_TOKENS = 8000
_AUDIO_BYTES_PER_TOKEN = 4000
_MESSAGE_TOKENS = 4
_URL = re.compile(r"[!-~]+")
_LONGEST_URL = 8192
_STEP = 500


class BadMedia(ValueError):
    """A media address the engine must not open; the message says why."""


def check(messages: list[Message], media_hosts: list[str]) -> Generator[None, None, Content]:
    """Check every part, drop what only echoes, and measure. Raises BadMedia with the part's place.

    Yields after each so many messages, and parts and calls of one."""
    text_bytes, other = 0, 3
    kinds = {"text"}
    for position, message in enumerate(messages):
        if position % _STEP == _STEP - 1:
            yield
        message.annotations = message.audio = message.reasoning_details = message.cache_control = UNSET
        message.provider_specific_fields = message.thinking_blocks = message.parsed = UNSET
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
        for place, call in enumerate(message.tool_calls or ()):
            if place % _STEP == _STEP - 1:
                yield
            # As a call without arguments is streamed. Engines read it as JSON, and fail.
            call.function.arguments = (call.function.arguments or "").strip() or "{}"
            text_bytes += _size(call.function.arguments) + _size(call.function.name) + _size(call.id) + _extra(call)
        if isinstance(message.content, str):
            text_bytes += _size(message.content)
            continue
        for place, part in enumerate(message.content or ()):
            if place % _STEP == _STEP - 1:
                yield
            part.cache_control = UNSET
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
    if len(url) > _LONGEST_URL:
        raise BadMedia(f"{place}: an address of more than {_LONGEST_URL} characters, or data that is no {kind}'s")
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


def put_back(content: Content, cut: Cut) -> Generator[None, None, None]:
    """Put the long texts that were cut out of checked messages in their places, as JSON. Raises msgspec.DecodeError.

    Each encoding of the messages, of which a request needs several, then copies them.
    """
    for message in content.messages if cut.left else ():
        holders: list[tuple[msgspec.Struct, str]] = [(message, name) for name in _TEXTS]
        holders += [(call.function, "arguments") for call in message.tool_calls or ()]
        parts = message.content if isinstance(message.content, list) else ()
        holders += [_text_of(part) for part in parts]
        for holder, name in holders:
            mark = getattr(holder, name)
            literal = cut.literal(mark) if isinstance(mark, str) else None
            if literal is not None:
                text, size = yield from rewrite(literal)
                setattr(holder, name, text)
                if name != "url":
                    content.text_bytes += size - _size(mark)


_TEXTS = ("content", "reasoning_content", "reasoning", "refusal")


def _text_of(part: Part) -> tuple[msgspec.Struct, str]:
    match part:
        case TextPart():
            return part, "text"
        case RefusalPart():
            return part, "refusal"
        case ImagePart():
            return part.image_url, "url"
        case VideoPart():
            return part.video_url, "url"
        case AudioPart():
            return part.input_audio, "data"
