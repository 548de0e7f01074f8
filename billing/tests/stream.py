"""Usage events as settlement appends them, and the stream they stand in."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from uuid import UUID

import redis
from django.conf import settings

from billing.drain import GROUP
from billing.usage import iso, new_request_id
from tenants.meters.holds import USAGE

Event = dict[str, Any]


def usage_event(at: datetime | None = None, **changes: Any) -> Event:
    """One event, admitted at `at` (now), of acme's project web unless `changes` say otherwise."""
    now = (at.timestamp() if at else time.time()) * 1000
    request_id = UUID(changes["request_id"]) if "request_id" in changes else new_request_id(int(now))
    event: Event = {
        "v": 1,
        "part": 0,
        "request_id": str(request_id),
        "tenant": "acme",
        "project": "web",
        "key": "ABCDEFGHIJKL",
        "model": "demo",
        "target": "local",
        "replica": "local/r1",
        "kind": "chat",
        "status": "ok",
        "finish_reason": "stop",
        "input_tokens": 100,
        "cached_input_tokens": 40,
        "output_tokens": 7,
        "reasoning_tokens": 2,
        "usage_source": "reported",
        "cost": "0.000123456789",
        "cost_nano": 123457,
        "currency": "EUR",
        "price": "2026-01",
        "admitted_at": iso(request_id.int >> 80),
        "finished_at": iso((request_id.int >> 80) + 900),
        "queue_ms": 0,
        "ttft_ms": 12.5,
        "tpot_ms": 8.25,
        "fallback": 0,
        "cache": "none",
        "labels": {"team": "search"},
        "upstream_id": "a" * 32,
    }
    return event | changes


@contextmanager
def connect() -> Iterator["redis.Redis"]:
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        yield client


def append(client: "redis.Redis", *events: Event | bytes) -> None:
    """Append to the stream."""
    with client.pipeline() as pipeline:
        for event in events:
            pipeline.xadd(USAGE, {"e": event if isinstance(event, bytes) else json.dumps(event).encode()})
        pipeline.execute()


def is_empty(client: "redis.Redis") -> bool:
    """Whether nothing waits in the stream and nothing is read but not acknowledged."""
    return client.xlen(USAGE) == 0 and client.xpending(USAGE, GROUP)["pending"] == 0
