"""What a client asks of a model, whatever the endpoint's dialect.

Admission, placement, estimates, attempts, settlement and records know operations; what a dialect reads becomes one, and
each kind is one file beside this.
"""

from abc import abstractmethod
from typing import Any, ClassVar

import msgspec


class Operation(msgspec.Struct, kw_only=True):
    """A checked request of one model. `passed` are the client's own bytes of each field the engine acts on.

    neutral: those of them that ask for nothing, and are left out where an engine does not know them.
    max_tokens: of each of the `n` choices; None where the client left it out. unknown: fields nobody knows, for the
    route to decide on. schema_bytes: of tools and schemas, which are prompt too. tier: what the header x-headrace-tier
    says, for the conditions of routes. fallback: whether another upstream may be asked than the route's first for it.
    """

    kind: ClassVar[str]

    model: str
    stream: bool = False
    include_usage: bool = False
    max_tokens: int | None = None
    n: int = 1
    passed: dict[str, msgspec.Raw]
    unknown: list[str]
    labels: dict[str, str]
    schema_bytes: int = 0
    neutral: frozenset[str] = frozenset()
    tier: str = ""
    fallback: bool = True

    @property
    def decisive(self) -> dict[str, msgspec.Raw]:
        """The fields that change the answer, which an engine has to know."""
        return {name: value for name, value in self.passed.items() if name not in self.neutral}

    @property
    def tool_names(self) -> frozenset[str]:
        """The names of the tools that the answer may call."""
        return frozenset()

    # --- its size -----------------------------------------------------------------------------------------------------
    @property
    @abstractmethod
    def text_bytes(self) -> int:
        """Bytes of the prompt's text, without tools and schemas."""

    @property
    @abstractmethod
    def other_tokens(self) -> int:
        """Tokens of the prompt that are not text: media, and the frames of messages; estimated."""

    @property
    @abstractmethod
    def modalities(self) -> frozenset[str]:
        """What the prompt is made of: `text`, `image`, `audio`, `video`."""

    @property
    def is_text(self) -> bool:
        """Whether the prompt is nothing but text, so that its bytes say how many tokens it can be at most."""
        return self.modalities == {"text"}

    @property
    @abstractmethod
    def prompt_ceiling(self) -> int:
        """The most tokens that the prompt can be."""

    # --- what an engine is sent ---------------------------------------------------------------------------------------
    @abstractmethod
    def upstream_fields(self) -> dict[str, Any]:
        """The client's fields as an engine takes them; `Protocol.body` adds ours."""

    @abstractmethod
    def prompt_text(self) -> bytes:
        """The bytes that decide the prompt, for the prefix index: equal beginnings are equal at the engine."""

    @abstractmethod
    def opening(self) -> bytes:
        """What stays of the prompt while a conversation grows."""
