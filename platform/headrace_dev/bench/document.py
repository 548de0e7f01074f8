"""The configuration of a benchmark's Headrace: one pool on the upstream, and tenants that each have every limit."""

import secrets
from typing import Any

# High enough never to refuse, so that each request takes and gives back all of its meters.
LIMITS = {
    "requests_per_minute": 1_000_000,
    "input_tokens_per_minute": 1_000_000_000,
    "output_tokens_per_minute": 1_000_000_000,
    "concurrency": 100_000,
}


def document(tenants: int, *, upstream: str, model: str) -> tuple[dict[str, Any], list[str]]:
    """What `apply` is given (JSON is YAML), and the keys in it: one for each tenant."""
    keys = [f"bench-{number}-{secrets.token_urlsafe(32)}" for number in range(tenants)]
    return {
        "pools": [{"name": model, "engine": "sglang", "model": model, "replicas": [upstream]}],
        "models": [
            {
                "name": model,
                "context_window": 131072,
                "default_max_tokens": 256,
                "route": {"targets": [{"pool": model}]},
            }
        ],
        "tenants": [
            {
                "slug": f"tenant-{number}",
                "name": f"Tenant {number}",
                "currency": "EUR",
                "time_zone": "UTC",
                "limits": LIMITS,
                "projects": [{"slug": "app", "name": "App", "limits": LIMITS}],
                "keys": [{"name": "app", "project": "app", "secret": key, "limits": LIMITS}],
            }
            for number, key in enumerate(keys)
        ],
    }, keys
