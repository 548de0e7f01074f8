"""SGLang's own server (0.5): names attempts by `rid`, salts its radix cache, reports running usage on every event."""

from typing import Any

import msgspec

from engines.protocols.base import EXTENSIONS, PROMPT_FIELDS, Attempt, Protocol, Upstream


class SGLang(Protocol):
    name = "sglang"
    extensions = EXTENSIONS
    token_per_event = True

    def body(self, upstream: Upstream, fields: dict[str, Any], attempt: Attempt) -> dict[str, Any]:
        body = super().body(upstream, fields, attempt)
        body["rid"] = attempt.rid
        if attempt.salt is not None:
            body["cache_salt"] = attempt.salt
        return body

    def stream_options(self) -> dict[str, bool]:
        # With running usage on every event, a stream that is cut short still has exact counts.
        return {"include_usage": True, "continuous_usage_stats": True}

    def abort_request(self, upstream: Upstream, rid: str) -> tuple[str, dict[str, str], bytes] | None:
        # With --admin-api-key set, abort takes only that key.
        key = upstream.admin_key or upstream.api_key
        headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
        return f"{upstream.base_url}/abort_request", headers, msgspec.json.encode({"rid": rid})

    def count_request(self, upstream: Upstream, text: str) -> tuple[str, bytes] | None:
        body = {"model": upstream.model, "prompt": text, "add_special_tokens": False}
        return f"{upstream.base_url}/tokenize", msgspec.json.encode(body)

    def count_prompt_request(self, upstream: Upstream, fields: dict[str, Any]) -> tuple[str, bytes] | None:
        body = {name: fields[name] for name in PROMPT_FIELDS if name in fields}
        return f"{upstream.base_url}/tokenize", msgspec.json.encode({**body, "model": upstream.model})
