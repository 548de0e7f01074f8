"""What the choices of every answer look like: the form that all SDKs take, field by field.

The strictest of each: openai-python's models, openai-node's types, the validators of Vercel's AI SDK. A field that
their types require is required here. What an engine says beyond it (matched_stop, token_ids, extra_content) passes.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]
Index = Annotated[int, Meta(ge=0)]
Name = Annotated[str, Meta(min_length=1)]


class TopLogprob(msgspec.Struct):
    token: str
    logprob: float
    bytes: list[int] | None


class TokenLogprob(msgspec.Struct):
    token: str
    logprob: float
    bytes: list[int] | None
    top_logprobs: list[TopLogprob]


class Logprobs(msgspec.Struct):
    content: list[TokenLogprob] | None
    refusal: list[TokenLogprob] | None


class UrlCitation(msgspec.Struct):
    start_index: int
    end_index: int
    url: str
    title: str


class Annotation(msgspec.Struct):
    type: Literal["url_citation"]
    url_citation: UrlCitation


# --- a stream's
class FunctionPiece(msgspec.Struct):
    name: str | None = None
    arguments: str = ""


class CallPiece(msgspec.Struct):
    """id and name belong to a call's first piece alone: openai-python appends what it finds in later ones. A type of
    null it takes for the call's."""

    index: Index
    function: FunctionPiece
    id: str | None = None
    type: Literal["function"] | UnsetType = UNSET


class Delta(msgspec.Struct):
    """role belongs to a choice's first event alone, as above; no SDK does without it there."""

    role: Literal["assistant"] | None = None
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[CallPiece] | None = None
    annotations: list[Annotation] | None = None
    function_call: None = None
    audio: None = None
    text: None = None


class StreamedChoice(msgspec.Struct):
    """text: where engines of completions say what is content here."""

    index: Index
    delta: Delta
    finish_reason: FinishReason | None
    logprobs: Logprobs | None = None
    text: None = None


# --- a whole answer's
class Function(msgspec.Struct):
    name: str
    arguments: str


class Call(msgspec.Struct):
    id: Name
    type: Literal["function"]
    function: Function


class Message(msgspec.Struct):
    """No null where a field may only be missing, and no empty list of calls, which is one to some."""

    role: Literal["assistant"]
    content: str | None
    refusal: str | None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: Annotated[list[Call], Meta(min_length=1)] | UnsetType = UNSET
    annotations: list[Annotation] | UnsetType = UNSET
    function_call: UnsetType = UNSET
    audio: None = None
    text: None = None


class WholeChoice(msgspec.Struct):
    """finish_reason: None only while the answer is not checked to have ended."""

    index: Index
    message: Message
    finish_reason: FinishReason | None
    logprobs: Logprobs | None
    text: None = None
