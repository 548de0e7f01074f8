"""vLLM's server: as SGLang's, but an attempt is named by a header and ends with its connection."""

from typing import Any

import msgspec

from engines.protocols.base import EXTENSIONS, PROMPT_FIELDS, Attempt, Protocol, Upstream


class VLLM(Protocol):
    name = "vllm"
    extensions = EXTENSIONS
    token_per_event = True

    def body(self, upstream: Upstream, fields: dict[str, Any], attempt: Attempt) -> dict[str, Any]:
        body = super().body(upstream, fields, attempt)
        body["request_id"] = attempt.rid
        if attempt.salt is not None:
            body["cache_salt"] = attempt.salt
        return body

    def stream_options(self) -> dict[str, bool]:
        return {"include_usage": True, "continuous_usage_stats": True}

    def count_request(self, upstream: Upstream, text: str) -> tuple[str, bytes] | None:
        body = {"model": upstream.model, "prompt": text, "add_special_tokens": False}
        return f"{upstream.base_url}/tokenize", msgspec.json.encode(body)

    def count_prompt_request(self, upstream: Upstream, fields: dict[str, Any]) -> tuple[str, bytes] | None:
        body = {name: fields[name] for name in PROMPT_FIELDS if name in fields}
        return f"{upstream.base_url}/tokenize", msgspec.json.encode({**body, "model": upstream.model})
