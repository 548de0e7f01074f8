"""What SGLang's server has in common with vLLM's, whose API it took over."""

from typing import Any

import msgspec

from engines.protocols.base import EXTENSIONS, PROMPT_FIELDS, Protocol, Upstream


class Tokenizing(Protocol):
    """Tokens are counted at /tokenize, and every event of a stream tells its use so far."""

    extensions = EXTENSIONS
    token_per_event = True
    health_path = "/health"

    def stream_options(self) -> dict[str, bool]:
        # With running usage on every event, a stream that is cut short still has exact counts.
        return {"include_usage": True, "continuous_usage_stats": True}

    def count_request(self, upstream: Upstream, text: str) -> tuple[str, bytes] | None:
        body = {"model": upstream.model, "prompt": text, "add_special_tokens": False}
        return f"{upstream.base_url}/tokenize", msgspec.json.encode(body)

    def count_prompt_request(self, upstream: Upstream, fields: dict[str, Any]) -> tuple[str, bytes] | None:
        body = {name: fields[name] for name in PROMPT_FIELDS if name in fields}
        return f"{upstream.base_url}/tokenize", msgspec.json.encode({**body, "model": upstream.model})
