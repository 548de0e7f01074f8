"""llama.cpp's server: closing the connection aborts a stream at once; no cache salt, so for demonstrations only."""

from typing import Any

import msgspec

from engines.protocols.base import EXTENSIONS, Attempt, Protocol, Upstream


class LlamaCpp(Protocol):
    name = "llamacpp"
    extensions = EXTENSIONS
    # tool_choice is taken and ignored: the answer is plain text.
    lacks = frozenset({"tool_choice"})
    many_choices = False  # it answers them, but its usage counts one of them
    token_per_event = True
    stops_whole = False  # it writes a whole answer to its end, whoever hangs up

    def body(self, upstream: Upstream, fields: dict[str, Any], attempt: Attempt) -> dict[str, Any]:
        body = super().body(upstream, fields, attempt)
        if (penalty := body.pop("repetition_penalty", None)) is not None:
            body["repeat_penalty"] = penalty
        # Its tokens so far come with `timings`; without them a cut stream has no count.
        body["timings_per_token"] = attempt.stream
        return body

    def count_request(self, upstream: Upstream, text: str) -> tuple[str, bytes] | None:
        return f"{upstream.base_url}/tokenize", msgspec.json.encode({"content": text})
