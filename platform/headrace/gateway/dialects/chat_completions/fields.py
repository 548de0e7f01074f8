"""The fields of a chat request: an allow-list. What stands here is checked; what does not is refused.

Each field's kind is `pass` (to the engine), `ours` (Headrace acts on it and sends its own), `drop` (it cannot change
the answer) or `neutral` (it could: only the values of neutral_values.py are taken, which are dropped).
Fields an engine could be abused with (rid, cache_salt, priority, lora_path, input_ids, ...) are not here: refused.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Number = Annotated[float, Meta(ge=-2.0, le=2.0)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Tokens = Annotated[int, Meta(ge=1)]
Label = Annotated[str, Meta(max_length=512)]
Stop = Annotated[str, Meta(max_length=1024)]


class StreamOptions(msgspec.Struct):
    """`include_usage` is the client's; what else clients send there (continuous_usage_stats) is dropped."""

    include_usage: bool | None = None


class _Typed(msgspec.Struct):
    type: str


class _Function(msgspec.Struct):
    name: Annotated[str, Meta(min_length=1, max_length=256)]


class _Tool(msgspec.Struct):
    type: Literal["function"]
    function: _Function


class _Choice(msgspec.Struct):
    """`{"type": "auto"}`, as libraries of other APIs write it, or a function by name."""

    type: Literal["none", "auto", "required", "function"]
    function: _Function | None = None

    def __post_init__(self) -> None:
        if self.type == "function" and self.function is None:
            raise ValueError("a choice of type function names it")


class _TemplateArguments(msgspec.Struct, forbid_unknown_fields=True):
    """Switches of chat templates. Others could replace the template itself."""

    enable_thinking: bool | None = None
    thinking: bool | None = None
    reasoning_effort: Annotated[str, Meta(max_length=64)] | None = None

    @property
    def says_anything(self) -> bool:
        return (self.enable_thinking, self.thinking, self.reasoning_effort) != (None, None, None)


class Field(msgspec.Struct, frozen=True):
    """How one field is treated. extension: whether it is beyond OpenAI's schema, and not known to every engine."""

    type: Any
    kind: str = "pass"
    extension: bool = False


CHAT: dict[str, Field] = {
    # Headrace acts on these.
    "model": Field(Annotated[str, Meta(min_length=1, max_length=200)], "ours"),
    "messages": Field(Any, "ours"),
    "stream": Field(bool, "ours"),
    "stream_options": Field(StreamOptions, "ours"),
    "max_tokens": Field(Tokens, "ours"),
    "max_completion_tokens": Field(Tokens, "ours"),
    "n": Field(Annotated[int, Meta(ge=1, le=128)], "ours"),
    "user": Field(Label, "ours"),
    "metadata": Field(dict[Annotated[str, Meta(max_length=64)], Label], "ours"),
    # The engine acts on these.
    "temperature": Field(Annotated[float, Meta(ge=0.0, le=2.0)]),
    "top_p": Field(Share),
    "frequency_penalty": Field(Number),
    "presence_penalty": Field(Number),
    "stop": Field(Stop | Annotated[list[Stop], Meta(max_length=16)]),
    "seed": Field(Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]),
    "logit_bias": Field(Annotated[dict[str, Annotated[float, Meta(ge=-100, le=100)]], Meta(max_length=1024)]),
    "logprobs": Field(bool),
    "top_logprobs": Field(Annotated[int, Meta(ge=0, le=20)]),
    "response_format": Field(_Typed),
    "tools": Field(Annotated[list[_Tool], Meta(max_length=128)]),
    "tool_choice": Field(Literal["none", "auto", "required"] | _Choice),
    "parallel_tool_calls": Field(bool),
    "reasoning_effort": Field(Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]),
    # Harmless sampling extensions of open-weight engines.
    "top_k": Field(Annotated[int, Meta(ge=-1, le=2**31 - 1)], extension=True),
    "min_p": Field(Share, extension=True),
    "repetition_penalty": Field(Annotated[float, Meta(gt=0.0, le=2.0)], extension=True),
    "chat_template_kwargs": Field(_TemplateArguments, extension=True),
    # Only where the route says so: else it is not known.
    "ignore_eos": Field(bool, extension=True),
    # OpenAI knows these; they cannot change what the model answers.
    "store": Field(bool, "drop"),
    "service_tier": Field(str, "drop"),
    "safety_identifier": Field(str, "drop"),
    "prompt_cache_key": Field(str, "drop"),
    "prompt_cache_retention": Field(str, "drop"),
    "prediction": Field(msgspec.Raw, "drop"),
    # These could: only the value that changes nothing is taken.
    "modalities": Field(Any, "neutral"),
    "verbosity": Field(Any, "neutral"),
}
