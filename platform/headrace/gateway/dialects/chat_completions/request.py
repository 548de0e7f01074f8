"""From a request's bytes to a checked chat: every field known, typed and bounded, or a 400 that names it."""

from collections.abc import Generator
from typing import Any

import msgspec

from headrace.gateway.dialects.chat_completions.bounds import (
    SCHEMAS,
    SMALL_BODY,
    check_schema,
    check_unknown_values,
    check_values,
)
from headrace.gateway.dialects.chat_completions.field_rules import check_rules
from headrace.gateway.dialects.chat_completions.fields import CHAT
from headrace.gateway.dialects.chat_completions.long_texts import Cut
from headrace.gateway.dialects.chat_completions.messages import BadMedia, check, put_back
from headrace.gateway.dialects.chat_completions.neutral_values import NEUTRAL, as_whole_number, is_neutral
from headrace.gateway.errors import ApiError
from headrace.gateway.operations.chat import IGNORE_EOS, ChatOperation
from headrace.gateway.operations.messages import Content, Messages
from headrace.gateway.process.large_bodies import LargeBodies

# With the client's own request id, this stays within what a record takes (16 KiB).
_MOST_LABELS = 12 * 1024
_NO_TOOL = b'"none"'
# OpenAI takes 0, which leaves the likeliest token; SGLang and vLLM want more than 0.
_LEAST_TOP_P = msgspec.Raw(b"1e-06")
_encode = msgspec.json.encode
# What of a field nobody knows is told, and of an error.
_NAME_TOLD, _ERROR_TOLD = 100, 500
_ABSENT = msgspec.Raw(b"")
_known = msgspec.json.Decoder(msgspec.defstruct("_Known", [(name, msgspec.Raw, _ABSENT) for name in CHAT]))
_shallow = msgspec.json.Decoder(dict[str, msgspec.Raw])
_messages = msgspec.json.Decoder(Messages)
_decoders = {name: msgspec.json.Decoder(field.type) for name, field in CHAT.items()}


def parse(body: bytes, media_hosts: list[str]) -> ChatOperation:
    """Check a chat request's body. Raises ApiError; unknown fields are listed, for the route to decide on."""
    steps = _parse(body, media_hosts)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            chat: ChatOperation = done.value
            return chat


async def parse_by_turns(body: bytes, media_hosts: list[str], tenant: str, large: LargeBodies) -> ChatOperation:
    """As `parse`; a large body in steps, when it is its tenant's turn. Raises ApiError."""
    if len(body) <= SMALL_BODY:
        return parse(body, media_hosts)
    return await large.read(tenant, _parse(body, media_hosts))


def _parse(body: bytes, media_hosts: list[str]) -> Generator[None, None, ChatOperation]:
    """Yields between steps of some milliseconds each."""
    cut = Cut(body, [])
    try:
        if len(body) > SMALL_BODY:
            number, long = yield from check_values(body, CHAT)
            cut = Cut(body, long)
            known = _known.decode(cut.body)
            yield
            yield from check_unknown_values(number, [bytes(getattr(known, name)) for name in CHAT])
        chat = yield from _check_all(cut.body, media_hosts)
        yield from put_back(chat.content, cut)
        if cut.left:  # a text is where we do not look for one
            chat = yield from _check_all(body, media_hosts)
        if len(body) > SMALL_BODY:
            yield  # the request goes on with steps of its own
        return chat
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ApiError("invalid_request", f"The body is not a JSON object: {_told(error)}") from None


def _check_all(body: bytes, media_hosts: list[str]) -> Generator[None, None, ChatOperation]:
    if not body.isascii():
        body.decode()  # what goes on as it came is not decoded below
    raw = _shallow.decode(body)
    yield
    values: dict[str, Any] = {}
    passed: dict[str, msgspec.Raw] = {}
    unknown: list[str] = []
    neutral: set[str] = set()
    for name, value in raw.items():
        field = CHAT.get(name)
        if is_neutral(name, value):
            if field is None or not _is_kept(name, value):
                continue  # nothing is asked for: some clients name every field there is
            neutral.add(name)
        if field is None or (name == IGNORE_EOS and bytes(value) not in {b"true", b"false"}):
            unknown.append(name[:_NAME_TOLD])
        elif field.kind == "neutral":
            wanted = f"'{name}' is not supported with other than {NEUTRAL[name][0]!r}."
            raise ApiError("unsupported_parameter", wanted, param=name)
        else:
            checked, value = _check(name, value)
            if field.kind == "ours":
                values[name] = checked
            elif field.kind == "pass" and (sent := _as_sent(name, checked, value)) is not None:
                passed[name] = sent
    _drop_idle_tool_fields(passed)
    for name in SCHEMAS:
        if name in passed:
            yield from check_schema(name, passed[name])
            yield
    yield from check_rules(passed)
    for name in ("model", "messages"):
        if name not in values:
            raise ApiError("invalid_request", f"Missing required parameter: '{name}'.", param=name)
    content = yield from _content(raw["messages"], media_hosts)
    options = values.get("stream_options")
    stream = values.get("stream", False)
    if options is not None and not stream:
        raise ApiError(
            "invalid_request", "'stream_options' is only allowed when 'stream' is true.", param="stream_options"
        )
    return ChatOperation(
        model=values["model"],
        content=content,
        stream=stream,
        include_usage=bool(options and options.include_usage),
        max_tokens=_max_tokens(values),
        n=values.get("n", 1),
        passed=passed,
        unknown=unknown,
        labels=_labels(values),
        neutral=frozenset(neutral),
        schema_bytes=sum(len(bytes(passed[name])) for name in ("tools", "response_format") if name in passed),
    )


def _check(name: str, value: msgspec.Raw) -> tuple[Any, msgspec.Raw]:
    """The checked value, and its bytes: those of a whole number that was written as 2.0 are 2. Raises ApiError."""
    if name == "messages":
        return value, value  # checked by its own decoder, once the rest is sound
    try:
        return _decoders[name].decode(value), value
    except (msgspec.DecodeError, RecursionError) as error:
        if (number := as_whole_number(value)) is not None and bytes(number) != bytes(value):
            return _check(name, number)
        raise ApiError("invalid_request", f"Invalid value for '{name}': {_told(error)}", param=name) from None


def _is_kept(name: str, value: msgspec.Raw) -> bool:
    """Whether a neutral value goes to engines that know its field: the model may come with another default."""
    is_open = CHAT[name].extension and CHAT[name].kind == "pass" and name != IGNORE_EOS
    return bytes(value) != b"null" and (name == "tool_choice" or is_open)


def _as_sent(name: str, checked: Any, value: msgspec.Raw) -> msgspec.Raw | None:
    """A field's bytes as engines take them; None for what asks for nothing."""
    if name == "stop":
        stops = [checked] if isinstance(checked, str) else checked
        if all(stops):
            return value
        # An empty one would end the answer at once, or is refused.
        kept = [text for text in stops if text]
        return msgspec.Raw(_encode(kept)) if kept else None
    if name == "tool_choice" and (kind := getattr(checked, "type", "function")) != "function":
        return msgspec.Raw(_encode(kind))  # as some libraries write `auto`
    if (name == "top_k" and not checked) or (name == "chat_template_kwargs" and not checked.says_anything):
        return None  # 0 is vLLM's way to say -1, and refused by others
    return _LEAST_TOP_P if name == "top_p" and not checked else value


def _drop_idle_tool_fields(passed: dict[str, msgspec.Raw]) -> None:
    """How tools are to be chosen, where there are none: some upstreams refuse it."""
    if "tools" not in passed:
        passed.pop("parallel_tool_calls", None)
        if bytes(passed.get("tool_choice", b"")) in {b'"auto"', _NO_TOOL}:
            del passed["tool_choice"]


def _content(value: msgspec.Raw, media_hosts: list[str]) -> Generator[None, None, Content]:
    try:
        messages = _messages.decode(value)
        yield
        return (yield from check(messages, media_hosts))
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
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:_ERROR_TOLD]
