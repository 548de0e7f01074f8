"""What a scripted answer does. A request carries its script as the start of its last user message,

    {"script": {"tokens": 20, "interval_ms": 5, "drop_after": 7}} any further text

and anything after the object only lengthens the prompt. Without one, the server's queued or default script applies
(`POST /control/script`). Unknown fields are refused with a 400 that begins `script:`, so a misspelt test fails.
"""

import json
from functools import lru_cache
from typing import Any, Literal

import msgspec

PREFIX = '{"script":'

UsageKind = Literal[
    "asked",  # where the request's stream_options ask for it, as SGLang does
    "continuous",  # on every chunk and at the end, asked or not
    "final",  # only the last chunk, whatever was asked
    "finish",  # only inside the chunk that has the finish_reason
    "twice",  # on every chunk, in the finish chunk, and two final chunks
    "none",  # never
    "null",  # `"usage": null` on every chunk, no final chunk
    "null_zero",  # null on every chunk, then a final chunk of zeros
    "zero",  # as asked, every number 0
    "negative",  # as asked, every number negated
    "cached_over_prompt",  # as asked, 100 more cached tokens than prompt tokens
    "string",  # as asked, numbers as JSON strings
    "huge",  # as asked, numbers beyond 64 bits
    "partial",  # as asked, prompt_tokens alone
]


class ToolCall(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One tool call, its arguments in pieces; a null piece is sent as null, as some engines do."""

    name: str
    arguments: list[str | None]


class Script(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Times are milliseconds, `*_after` counts content events already sent. Defaults give a plain SGLang answer."""

    # --- what is generated
    tokens: int | None = None  # default: the length of `text`, else the server's --tokens; max_tokens cuts it
    text: str | list[str] | None = None  # token texts, repeated as needed; of a string, each character is a token
    tokens_per_event: int = 1
    reasoning: int = 0  # so many first tokens are reasoning_content
    tool_calls: list[ToolCall] = []  # after the text tokens (none by default); each non-null piece is a token
    big_event: int = 0  # the first token's text is padded to so many bytes
    stamp: bool = False  # token text is `<k>@<CLOCK_MONOTONIC in ns when handed to the server> `
    finish_reason: str | None = "auto"  # stop, length or tool_calls; null: the stream has none
    choices_empty: Literal["no", "empty", "null", "missing"] = "no"  # non-stream: no usable choices, with usage

    # --- when
    interval_ms: float | None = None  # event k is due at first event + k * interval; default: --interval-ms
    first_ms: float | None = None  # before the first event; default: --first-ms
    headers_first: bool = False  # headers at once instead of with the first event
    linger_ms: float = 0  # keep the answer open after its last event

    # --- accounting
    usage: UsageKind = "asked"
    prompt_tokens: int | None = None  # default: the toy tokenizer's count
    cached_tokens: int | None = None  # default: the prefix model's
    usage_details: bool = True  # false: prompt_tokens_details is null, as without --enable-cache-report

    # --- refusals and failures
    status: int | None = None  # answer with this status and `body`
    body: Any = None  # a string is sent as it is, anything else as JSON; default: SGLang's error form
    content_type: str | None = None
    headers: dict[str, str] = {}  # further response headers
    retry_after: str | None = None
    queue_full: bool = False  # as SGLang: 503, or for a stream 200 and an error event
    html: bool = False  # 200 and an HTML page
    pad: int = 0  # so many bytes more in the error message or HTML page
    error_event_after: int | None = None  # stream: an error event, then [DONE] unless done is false; else a 500
    stall_after: int | None = None  # then silence (with `ping_ms`, comments) until the client or an abort ends it
    drop_after: int | None = None
    drop: Literal["reset", "close"] = "reset"  # RST, or FIN without the last HTTP chunk
    no_answer: bool = False  # drop the connection without a byte, as a server does with one that idled too long
    headers_only: bool = False  # headers, then silence

    # --- how it ends when it is told to
    ignore_close: bool = False  # generate to the end although the client left
    ignore_abort: bool = False  # answer 200 to /abort_request and go on
    close_lag_ms: float | None = None  # until a client's close is seen; default: 0 streaming, 2000 else (as measured)
    abort_lag_ms: float = 0  # until an abort takes effect

    # --- the wire
    role_chunk: bool = True
    done: bool = True
    end_newline: bool = True  # false: the last event lacks its line ends
    eol: Literal["\n", "\r\n", "\r"] = "\n"
    split: list[int] | int | None = None  # segment sizes, what follows in one piece; a number: seed of random sizes
    split_every: int = 0  # segments of this size
    split_max: int = 64  # the largest random segment
    split_ms: float = 0  # between segments
    ping_ms: float = 0  # send `ping` whenever so long has passed
    ping: str = ": ping"
    junk: list[str] = []  # lines, each with a blank line after it, before the first event
    junk_every: int = 0  # and again after every so many events
    raw: list[str] | None = None  # base64: a 200 event stream of exactly these segments, `split_ms` apart

    @property
    def texts(self) -> list[str] | None:
        return list(self.text) if isinstance(self.text, str) else self.text


class BadScript(ValueError):
    """The script cannot be read; the message says why."""


def convert(value: object) -> Script:
    try:
        script = msgspec.convert(value, Script)
    except msgspec.ValidationError as error:
        raise BadScript(f"script: {error}") from error
    if script.tokens_per_event < 1 or (script.texts is not None and not script.texts):
        raise BadScript("script: tokens_per_event must be 1 or more, text must not be empty")
    return script


@lru_cache(maxsize=4096)
def embedded(content: str) -> Script | None:
    """The script at the start of a message, None when there is none."""
    if not content.startswith(PREFIX):
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(content)
    except ValueError as error:
        raise BadScript(f"script: {error}") from error
    return convert(value["script"])
