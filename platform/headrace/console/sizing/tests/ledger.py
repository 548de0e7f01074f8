"""Rows of usage, written as the drain writes them."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from billing.events import read_event
from billing.ledger import write_entries
from billing.partitions import ensure_months
from billing.usage import UsageEvent, admitted_ms, iso, new_request_id


def full_hour() -> datetime:
    return datetime.now(UTC).replace(minute=0, second=0, microsecond=0)


def write(when: datetime, count: int, *, tenant: str = "acme", **fields: Any) -> None:
    """`count` requests spread over the hour from `when`: 1,500 tokens in, a third of them cached, 200 or 400 out."""
    ensure_months()
    entries = []
    for index in range(count):
        request_id = new_request_id(int((when + timedelta(seconds=3599 * index / count)).timestamp() * 1000))
        at = iso(admitted_ms(request_id))
        values: dict[str, Any] = {
            "request_id": str(request_id), "tenant": tenant, "project": "app", "key": "k" * 12, "model": "small-chat",
            "target": "pool:a", "replica": "a-0", "status": "ok", "input_tokens": 1500, "cached_input_tokens": 500,
            "output_tokens": 200 + 200 * (index % 2), "currency": "EUR", "admitted_at": at, "finished_at": at,
        }  # fmt: skip
        event = UsageEvent(**(values | fields))
        entries.append(read_event(str(random.random()), msgspec.json.encode(event)))
    write_entries(entries)
