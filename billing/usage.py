"""The usage event: one request's use, as settlement appends it to `hr:usage` and the drain writes it to the ledger.

The same fields, under the same names, are in the record's row, in `manage.py usage --format json` and in the log line.
"""

import os
from datetime import UTC, datetime
from uuid import UUID

import msgspec

from billing import pricing
from billing.pricing import Rates

VERSION = 1
_encode = msgspec.json.encode
# Kinds of rows besides the endpoint's name.
SHADOW = "shadow"  # a copy of a request that its tenant did not ask for: costs it nothing
PRICING = "pricing"  # a correction that puts a price on a row that came without one: the same tokens, no use of its own
KINDS = ("chat", "completion", "embedding", "rerank", "batch", SHADOW, PRICING)
PRICED_PARTS = 10_000  # it is part PRICED_PARTS + n of a row of part n: priced twice, the ledger takes it once


class UsageEvent(msgspec.Struct, kw_only=True):
    """One request's use (part 0), or what a late word changes of it (part >= 1: signed differences of tokens and cost).

    Tokens are counts; `cached_input_tokens` is a subset of `input_tokens`, `reasoning_tokens` of `output_tokens`: in a
    record, and in a record with its corrections added. Durations are milliseconds; `ttft_ms` and `tpot_ms` are None
    where no token came. `cost` is exact, in `currency`, and None while unpriced; `cost_nano` is its ceiling in 1e-9
    units; `price` is the version of the price in force when the request was admitted, for the target that served it,
    `rates` what it says (pricing.py). Times are ISO 8601 in UTC with milliseconds; `admitted_at` is the millisecond
    inside the request's UUIDv7, never a second clock's reading.
    """

    v: int = VERSION
    part: int = 0
    request_id: str
    tenant: str
    project: str
    key: str
    model: str
    target: str
    replica: str
    kind: str = "chat"
    status: str = "abandoned"
    finish_reason: str | None = None
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    usage_source: str = "reported"
    cost: str | None = None
    cost_nano: int | None = None
    currency: str
    price: str | None = None
    rates: Rates | None = None
    admitted_at: str
    finished_at: str = ""
    queue_ms: int = 0
    ttft_ms: float | None = None
    tpot_ms: float | None = None
    fallback: int = 0
    cache: str = "none"
    upstream_id: str | None = None
    labels: dict[str, str] = {}

    @property
    def uncached_input_tokens(self) -> int:
        return self.input_tokens - self.cached_input_tokens


class Progress(msgspec.Struct, kw_only=True):
    """How far a running request is: what a reaper knows of it when its gateway dies.

    limited_input_tokens: what its limits keep of the input, of which the cached part may weigh less; None: all of it.
    """

    input_tokens: int = 0
    limited_input_tokens: int | None = None
    cached_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    usage_source: str = "reported"
    ttft_ms: float | None = None
    upstream_id: str | None = None
    target: str = ""
    replica: str = ""
    price: str | None = None
    rates: Rates | None = None


def priced(event: UsageEvent) -> UsageEvent:
    """`event` with what its own tokens cost at its own rates; without rates it is unpriced."""
    if event.rates is None:
        return msgspec.structs.replace(event, cost=None, cost_nano=None, price=None)
    cost = pricing.cost(
        event.rates,
        input_tokens=event.input_tokens,
        cached_input_tokens=event.cached_input_tokens,
        output_tokens=event.output_tokens,
    )
    return msgspec.structs.replace(event, cost=pricing.text(cost), cost_nano=pricing.nano(cost))


def log_line(event: UsageEvent) -> bytes:
    """The event as JSON, and what everybody would else work out of it: the uncached part of its input."""
    return _encode({**msgspec.structs.asdict(event), "uncached_input_tokens": event.uncached_input_tokens})


def new_request_id(now_ms: int) -> UUID:
    """A UUIDv7 (RFC 9562) whose time is `now_ms`: 48 bits of milliseconds, then 74 random bits."""
    random = int.from_bytes(os.urandom(10))
    value = now_ms << 80 | random
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return UUID(int=value)


def admitted_ms(request_id: UUID) -> int:
    """The millisecond a request was admitted: the one inside its id."""
    return request_id.int >> 80


def iso(epoch_ms: float) -> str:
    """ISO 8601 in UTC with milliseconds, ending in Z."""
    stamp = datetime.fromtimestamp(int(epoch_ms) / 1000, UTC)
    return f"{stamp:%Y-%m-%dT%H:%M:%S}.{stamp.microsecond // 1000:03d}Z"
