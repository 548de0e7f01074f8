"""From a request's bytes to a checked chat: every field known, typed and bounded, or a 400 that names it."""

from typing import Any

import msgspec

from headrace.api.errors import ApiError
from headrace.api.fields import CHAT, Field
from headrace.api.messages import BadMedia, Content, Messages, check

# With the client's own request id, this stays within what a record takes (16 KiB).
_MOST_LABELS = 12 * 1024
# Beyond the estimate's own few: ChatML takes 5, Llama's headers and gpt-oss' channels 6 to 8 a message.
_FRAME_TOKENS = 12
# The longest text that the templates of open models begin with by themselves has some 600 tokens (Mistral Small).
_TEMPLATE_TOKENS = 2048
# Values that ask for nothing, and are refused by some upstreams: empty lists, and vLLM's 0 for "no top_k".
_NOTHING: dict[str, tuple[Any, ...]] = {"top_k": (0,)}
_ANY_CHOICE = frozenset({b'"auto"', b'"none"'})
# OpenAI takes 0, which leaves the likeliest token; SGLang and vLLM want more than 0.
_LEAST_TOP_P = msgspec.Raw(b"1e-06")
_encode = msgspec.json.encode
_shallow = msgspec.json.Decoder(dict[str, msgspec.Raw])
_messages = msgspec.json.Decoder(Messages)
_decoders = {name: msgspec.json.Decoder(field.type) for name, field in CHAT.items()}


class ChatRequest(msgspec.Struct):
    """A checked chat. `passed` are the client's own bytes of each field the engine acts on.

    max_tokens: None where the client left it out. schema_bytes: of tools and schemas, which are prompt too.
    tier: what the header x-headrace-tier says, for the conditions of routes. fallback: whether another upstream may be
    asked than the route's first for it.
    """

    model: str
    content: Content
    stream: bool
    include_usage: bool
    max_tokens: int | None
    n: int
    passed: dict[str, msgspec.Raw]
    unknown: list[str]
    labels: dict[str, str]
    schema_bytes: int
    tier: str = ""
    fallback: bool = True

    @property
    def prompt_ceiling(self) -> int:
        """The most tokens that the prompt can be: a token a byte, and more than templates add; media as estimated.

        Templates put a frame around each message, write schemas out in lines, and may begin with a text of their own.
        """
        size = self.content.text_bytes + 2 * self.schema_bytes + self.content.other_tokens
        return size + _FRAME_TOKENS * len(self.content.messages) + _TEMPLATE_TOKENS

    def upstream_fields(self) -> dict[str, Any]:
        return {"messages": self.content.messages, **self.passed}


def parse(body: bytes, media_hosts: list[str]) -> ChatRequest:
    """Check a chat request's body. Raises ApiError; unknown fields are listed, for the route to decide on."""
    try:
        if not body.isascii():
            body.decode()  # what goes on as it came is not decoded below
        raw = _shallow.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ApiError("invalid_request", f"The body is not a JSON object: {_told(error)}") from None
    values: dict[str, Any] = {}
    passed: dict[str, msgspec.Raw] = {}
    unknown: list[str] = []
    for name, value in raw.items():
        field = CHAT.get(name)
        if bytes(value) == b"null":
            continue  # nothing is asked for: some clients name every field there is
        if field is None:
            unknown.append(name)
        else:
            checked = _check(name, value)
            if field.kind == "drop":
                _only_neutral(name, field, checked)
            elif field.kind == "ours":
                values[name] = checked
            elif name == "stop" and not all(stops := [checked] if isinstance(checked, str) else checked):
                # An empty one would end the answer at once, or is refused.
                if kept := [text for text in stops if text]:
                    passed[name] = msgspec.Raw(_encode(kept))
            elif checked not in _NOTHING.get(name, ([], {})):
                passed[name] = _LEAST_TOP_P if name == "top_p" and not checked else value
    _drop_idle_tool_fields(passed)
    for name in ("model", "messages"):
        if name not in values:
            raise ApiError("invalid_request", f"Missing required parameter: '{name}'.", param=name)
    content = _content(raw["messages"], media_hosts)
    options = values.get("stream_options")
    stream = values.get("stream", False)
    if options is not None and not stream:
        raise ApiError(
            "invalid_request", "'stream_options' is only allowed when 'stream' is true.", param="stream_options"
        )
    return ChatRequest(
        model=values["model"],
        content=content,
        stream=stream,
        include_usage=bool(options and options.include_usage),
        max_tokens=_max_tokens(values),
        n=values.get("n", 1),
        passed=passed,
        unknown=unknown,
        labels=_labels(values),
        schema_bytes=sum(len(bytes(passed[name])) for name in ("tools", "response_format") if name in passed),
    )


def _check(name: str, value: msgspec.Raw) -> Any:
    if name == "messages":
        return value  # checked by its own decoder, once the rest is sound
    try:
        return _decoders[name].decode(value)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ApiError("invalid_request", f"Invalid value for '{name}': {_told(error)}", param=name) from None


def _drop_idle_tool_fields(passed: dict[str, msgspec.Raw]) -> None:
    """How tools are to be chosen, where there are none: some upstreams refuse it."""
    if "tools" not in passed:
        passed.pop("parallel_tool_calls", None)
        if bytes(passed.get("tool_choice", b"")) in _ANY_CHOICE:
            del passed["tool_choice"]


def _only_neutral(name: str, field: Field, value: Any) -> None:
    if field.neutral is not None and value not in field.neutral:
        raise ApiError(
            "unsupported_parameter", f"'{name}' is not supported with other than {field.neutral[0]!r}.", param=name
        )


def _content(value: msgspec.Raw, media_hosts: list[str]) -> Content:
    try:
        return check(_messages.decode(value), media_hosts)
    except (msgspec.DecodeError, RecursionError) as error:
        code = "unsupported_parameter" if "unknown field" in str(error) else "invalid_request"
        raise ApiError(code, f"Invalid 'messages': {_told(error)}", param="messages") from None
    except BadMedia as error:
        raise ApiError("invalid_request", str(error), param="messages") from None


def _max_tokens(values: dict[str, Any]) -> int | None:
    both = [values[name] for name in ("max_completion_tokens", "max_tokens") if name in values]
    if len(set(both)) > 1:
        raise ApiError(
            "invalid_request", "'max_tokens' and 'max_completion_tokens' differ: set one of them.", param="max_tokens"
        )
    return both[0] if both else None


def _labels(values: dict[str, Any]) -> dict[str, str]:
    """The client's `user` and `metadata`, bounded: at most 16 pairs."""
    metadata = values.get("metadata") or {}
    if len(metadata) > 16:
        raise ApiError("invalid_request", "'metadata' has more than 16 keys.", param="metadata")
    labels = {f"metadata.{key}": value for key, value in metadata.items()}
    if "user" in values:
        labels["user"] = values["user"]
    # The ledger takes no NUL and no more than so much: what it refuses would be a record that nobody is billed for.
    if "\0" in values.get("user", ""):
        raise ApiError("invalid_request", "'user' holds a NUL.", param="user")
    if any("\0" in text for text in (*labels, *labels.values())) or len(_encode(labels)) > _MOST_LABELS:
        raise ApiError("invalid_request", f"'metadata' holds a NUL or over {_MOST_LABELS} bytes.", param="metadata")
    return labels


def _told(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
