"""What differs between engines, in one small interface; one file a protocol, found by name (`protocol("sglang")`).

An engine is asked through its OpenAI-compatible chat endpoint. A protocol says what that engine lacks and what it
takes beyond OpenAI's schema, how an attempt is named so that it can be aborted, and how text is counted in its tokens.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from engines.protocols.reading import Reading

# Sampling fields beyond OpenAI's schema that the open-weight engines share.
EXTENSIONS = frozenset({"top_k", "min_p", "repetition_penalty", "chat_template_kwargs", "ignore_eos"})
# The fields of a chat that are rendered into its prompt.
PROMPT_FIELDS = ("messages", "tools", "tool_choice", "reasoning_effort", "chat_template_kwargs")


class Upstream(msgspec.Struct, frozen=True):
    """One server to send a chat to: where it is, what it calls the model, what it wants to see of us."""

    protocol: "Protocol"
    base_url: str
    model: str
    api_key: str | None = None
    admin_key: str | None = None
    orders_by_priority: bool = False  # whether its engine was started to take `priority`: others refuse the request

    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.api_key}"} if self.api_key else {}


class Attempt(msgspec.Struct):
    """One try of one request: `rid` is 32 random hex digits, since engines match aborts by prefix.

    salt: separates this tenant's prefix cache from others'; None shares it.
    priority: higher goes first, where the engine was started to take it; None says nothing.
    is_out: whether it may have reached the engine.
    """

    rid: str
    stream: bool
    n: int
    max_tokens: int
    tenant: str
    salt: str | None
    priority: int | None = None
    is_out: bool = False

    def went_out(self) -> None:
        self.is_out = True


class Protocol:
    """The OpenAI chat protocol as hosted providers speak it; engines override what differs."""

    name: ClassVar[str]
    chat_path: ClassVar[str] = "/v1/chat/completions"
    # Sampling extensions beyond OpenAI's schema that this engine understands.
    extensions: ClassVar[frozenset[str]] = frozenset()
    # Fields of OpenAI's schema this engine ignores although they change the answer.
    lacks: ClassVar[frozenset[str]] = frozenset()
    # Whether `n` works: several choices, and their tokens counted.
    many_choices: ClassVar[bool] = True
    # Whether an event of its stream carries one token, so that events count tokens when nothing else does.
    token_per_event: ClassVar[bool] = False
    # Whether an attempt that was given up is generated, and charged to us, to its end all the same.
    bills_on: ClassVar[bool] = False
    # Whether others share it and it refuses by its own rules: its 429 is not a full batch that has room in an instant.
    is_hosted: ClassVar[bool] = False
    max_tokens_field: ClassVar[str] = "max_tokens"
    # The GET that says whether it serves. Any answer below 500 says yes.
    health_path: ClassVar[str] = "/v1/models"
    # The GETs that tell its load, asked each second; and the slower page with what is only there, each ten seconds.
    load_paths: ClassVar[tuple[str, ...]] = ()
    slow_path: ClassVar[str | None] = None
    # The GETs that tell which media its model takes: the first that is there.
    about_paths: ClassVar[tuple[str, ...]] = ()

    def body(self, upstream: Upstream, fields: dict[str, Any], attempt: Attempt) -> dict[str, Any]:
        """The JSON body: the client's checked fields and ours. Ours win."""
        # A field it does not know asks for nothing, or the chat was refused (`refused`).
        known = {name: value for name, value in fields.items() if self._knows(name)}
        body = {**known, "model": upstream.model, "stream": attempt.stream}
        body[self.max_tokens_field] = attempt.max_tokens
        if attempt.n > 1:
            body["n"] = attempt.n
        if attempt.stream:
            body["stream_options"] = self.stream_options()
        return body

    def headers(self, attempt: Attempt) -> dict[str, str]:
        """Headers of this attempt alone, beside the upstream's."""
        return {}

    def refused(self, fields: Mapping[str, Any]) -> str | None:
        """The first of `fields` this engine would ignore although it changes the answer; None if it takes them all.

        Values are JSON as the client wrote it."""
        return next((name for name in fields if not self._knows(name)), None)

    def _knows(self, name: str) -> bool:
        return name not in self.lacks and (name not in EXTENSIONS or name in self.extensions)

    def streams_whole(self, n: int) -> bool:
        """Whether an answer of `n` choices that its client wants whole is asked for as a stream, and put together.

        Only a stream tells what was generated until its client left, and whether an engine answers at all.
        """
        return True

    def stream_options(self) -> dict[str, bool]:
        return {"include_usage": True}

    def abort_request(self, upstream: Upstream, rid: str) -> tuple[str, dict[str, str], bytes] | None:
        """URL, headers and body of the call that aborts an attempt; None where closing the connection is the way."""
        return None

    def read_load(self, answers: dict[str, bytes]) -> Reading:
        """The load that the bodies of `load_paths` and `slow_path` tell, those that came. Raises ValueError."""
        return Reading()

    def read_lacks(self, about: bytes) -> frozenset[str]:
        """The media that its model surely does not take, by the body of one of `about_paths`. Raises ValueError."""
        return frozenset()

    def count_request(self, upstream: Upstream, text: str) -> tuple[str, bytes] | None:
        """URL and body of the call that tokenizes `text`; None where the server has no such thing."""
        return None

    def count_prompt_request(self, upstream: Upstream, fields: dict[str, Any]) -> tuple[str, bytes] | None:
        """URL and body of the call that tokenizes the prompt of a chat with these `fields`; None as above."""
        return None

    def counted(self, answer: bytes) -> int:
        """The number of tokens in the answer to either. Raises msgspec.DecodeError."""
        return len(msgspec.json.decode(answer, type=_Tokens).tokens)


class _Tokens(msgspec.Struct):
    tokens: list[Any]
