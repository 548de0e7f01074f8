"""The messages of a chat, in the shape in which engines take them, and their size."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

Name = Annotated[str, Meta(max_length=256)]
Unread = msgspec.Raw | UnsetType  # taken and dropped, so not decoded either


class _Part(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """cache_control: where clients of other APIs want a prompt cached. Engines cache as they will: dropped."""

    cache_control: Unread = UNSET


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
    content: str | Annotated[list[Part], Meta(max_length=2048)] | UnsetType | None = UNSET
    name: Name | None = None
    tool_calls: Annotated[list[ToolCall], Meta(max_length=1024)] | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    annotations: Unread = UNSET
    audio: Unread = UNSET
    reasoning_details: Unread = UNSET
    cache_control: Unread = UNSET
    provider_specific_fields: Unread = UNSET
    thinking_blocks: Unread = UNSET
    parsed: Unread = UNSET
    function_call: None = None
    extra_content: msgspec.Raw | UnsetType = UNSET


Messages = Annotated[list[Message], Meta(min_length=1, max_length=10_000)]


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
