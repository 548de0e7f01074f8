"""Answers as the strictest SDKs take them: what their types require has to be there, and nothing of another type.

openai-python's own models are asked too, in pydantic's strict mode. The others' are written down here, field by field:
openai-node 6.49 (resources/chat/completions/completions.d.ts), @ai-sdk/openai 3.0 and @ai-sdk/openai-compatible 2.0
(their zod schemas of chat responses and chunks).
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk

Reason = Literal["stop", "length", "tool_calls", "content_filter", "function_call"]


class Top(msgspec.Struct):
    token: str
    bytes: list[int] | None
    logprob: float


class Token(Top):
    top_logprobs: list[Top]


class Logprobs(msgspec.Struct):
    content: list[Token] | None
    refusal: list[Token] | None


class UrlCitation(msgspec.Struct):
    start_index: int
    end_index: int
    url: str
    title: str


class Annotation(msgspec.Struct):
    type: Literal["url_citation"]
    url_citation: UrlCitation


class PieceFunction(msgspec.Struct):
    arguments: str | UnsetType = UNSET
    name: str | UnsetType | None = UNSET


class Piece(msgspec.Struct):
    index: int
    function: PieceFunction
    id: str | UnsetType | None = UNSET
    type: Literal["function"] | UnsetType | None = UNSET


class Delta(msgspec.Struct):
    content: str | UnsetType | None = UNSET
    refusal: str | UnsetType | None = UNSET
    role: Literal["assistant"] | UnsetType | None = UNSET
    reasoning_content: str | UnsetType | None = UNSET
    reasoning: str | UnsetType | None = UNSET
    tool_calls: list[Piece] | UnsetType | None = UNSET
    annotations: list[Annotation] | UnsetType | None = UNSET


class ChunkChoice(msgspec.Struct):
    delta: Delta
    finish_reason: Reason | None
    index: int
    logprobs: Logprobs | UnsetType | None = UNSET


class PromptDetails(msgspec.Struct):
    cached_tokens: int | UnsetType = UNSET


class OutputDetails(msgspec.Struct):
    reasoning_tokens: int | UnsetType = UNSET


class Usage(msgspec.Struct):
    completion_tokens: int
    prompt_tokens: int
    total_tokens: int
    completion_tokens_details: OutputDetails | UnsetType = UNSET
    prompt_tokens_details: PromptDetails | UnsetType = UNSET


class _Answer(msgspec.Struct, kw_only=True):
    id: Annotated[str, Meta(min_length=1)]
    created: int
    model: Annotated[str, Meta(min_length=1)]
    system_fingerprint: str | UnsetType = UNSET
    service_tier: Literal["auto", "default", "flex", "scale", "priority"] | UnsetType | None = UNSET


class Chunk(_Answer, kw_only=True):
    choices: list[ChunkChoice]
    object: Literal["chat.completion.chunk"]
    usage: Usage | UnsetType | None = UNSET


class Function(msgspec.Struct):
    arguments: str
    name: Annotated[str, Meta(min_length=1)]


class Call(msgspec.Struct):
    id: Annotated[str, Meta(min_length=1)]
    function: Function
    type: Literal["function"]


class Message(msgspec.Struct):
    content: str | None
    refusal: str | None
    role: Literal["assistant"]
    reasoning_content: str | UnsetType | None = UNSET
    reasoning: str | UnsetType | None = UNSET
    tool_calls: list[Call] | UnsetType = UNSET
    annotations: list[Annotation] | UnsetType = UNSET


class Choice(msgspec.Struct):
    finish_reason: Reason
    index: int
    logprobs: Logprobs | None
    message: Message


class Completion(_Answer, kw_only=True):
    choices: Annotated[list[Choice], Meta(min_length=1)]
    object: Literal["chat.completion"]
    usage: Usage


def check_completion(body: bytes) -> ChatCompletion:
    """The answer as openai-python reads it. Raises where any SDK would not take it."""
    completion = msgspec.json.decode(body, type=Completion, strict=True)
    for choice in completion.choices:
        calls = choice.message.tool_calls or []
        assert len({call.id for call in calls}) == len(calls), "two calls of one id"
    return ChatCompletion.model_validate_json(body, strict=True)


def check_stream(events: list[dict[str, Any]]) -> ChatCompletion:
    """The answer as openai-python puts it together. Raises where any SDK would not take an event, or their sum."""
    state: ChatCompletionStreamState[None] = ChatCompletionStreamState()
    begun: set[int] = set()
    named: dict[tuple[int, int], str] = {}
    for event in events:
        raw = msgspec.json.encode(event)
        chunk = msgspec.json.decode(raw, type=Chunk, strict=True)
        for choice in chunk.choices:
            assert (choice.index in begun) is not (choice.delta.role == "assistant"), "a role that is not told once"
            begun.add(choice.index)
            for piece in choice.delta.tool_calls or ():
                key = (choice.index, piece.index)
                if key not in named:
                    assert piece.index == sum(of == choice.index for of, _ in named), "a call out of order"
                    assert piece.id, "a call without an id"
                    assert piece.function.name, "a call without a name"
                    assert piece.type == "function"
                    named[key] = str(piece.id)
                else:
                    assert not piece.id, "a call of two ids"
                    assert not piece.function.name, "a call named twice"
        state.handle_chunk(ChatCompletionChunk.model_validate_json(raw, strict=True))
    assert len(set(named.values())) == len(named), "two calls of one id"
    return ChatCompletion.model_validate(state.current_completion_snapshot.model_dump())
