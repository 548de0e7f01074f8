"""From a usage event as it stands in the stream to a row of the ledger, or the reason why it cannot be one."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from billing.models import Status, UsageSource
from billing.pricing import nano
from billing.usage import VERSION, UsageEvent, admitted_ms, priced
from tenants.meters.meter import MOST_NANO

COLUMNS = (
    "request_id", "part", "admitted_at", "finished_at", "tenant", "project", "key", "model", "target", "replica",
    "kind", "status", "finish_reason", "input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens",
    "usage_source", "cost", "cost_nano", "currency", "price", "queue_ms", "ttft_ms", "tpot_ms", "fallback", "cache",
    "labels", "upstream_id",
)  # fmt: skip
NAMES = ("tenant", "project", "key", "model", "kind", "currency")  # of whom and what; never empty
TEXTS = (*NAMES, "target", "replica", "finish_reason", "price", "cache", "upstream_id")
TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens")
DURATIONS = ("queue_ms", "ttft_ms", "tpot_ms")
LONGEST_TEXT = 512
LARGEST_LABELS = 16 * 1024
# Larger than 128 choices of the longest window (routing), so small that no hour's or day's sum overflows.
MOST_TOKENS = 10**12
LONGEST_MS = 10.0**10
LATEST_MS = 10**13  # the year 2286
LARGEST_SMALL = 2**15 - 1
_STATUSES, _SOURCES = frozenset(Status.values), frozenset(UsageSource.values)
# JSON has a NUL as this escape only, so that one search of the text mostly spares one of each field.
_NUL = b"\\u0000"
_COST = re.compile(r"-?[0-9]{1,24}(\.[0-9]{1,12})?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_decoder = msgspec.json.Decoder(UsageEvent)
_encode = msgspec.json.encode


class BadEvent(Exception):
    """The event cannot be a record; the text says why."""


class Entry(NamedTuple):
    """One event and where it was read: its id in the stream, its text, and its row in the order of COLUMNS."""

    id: str
    text: bytes
    row: tuple[Any, ...]

    @property
    def admitted_at(self) -> datetime:
        admitted: datetime = self.row[COLUMNS.index("admitted_at")]
        return admitted


def read_event(entry_id: str, text: bytes | None) -> Entry:
    """Check everything the ledger's types and rules demand; raises BadEvent."""
    if text is None:
        raise BadEvent("the entry has no field e")
    try:
        event = _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadEvent(f"not a usage event: {error}") from error
    if event.v != VERSION:
        raise BadEvent(f"version {event.v}, this ledger knows {VERSION}")
    labels = _encode(event.labels)
    _check_texts(event, labels, may_hold_nul=_NUL in text)
    _check_numbers(event)
    request_id, admitted_at = _admitted(event)
    values: dict[str, Any] = msgspec.structs.asdict(event)
    values |= {
        "request_id": request_id,
        "admitted_at": admitted_at,
        # Another machine's clock may be behind the one that admitted.
        "finished_at": max(_moment("finished_at", event.finished_at), admitted_at),
        "cost": _cost(event),
        # A version that knew no such bound may have written more.
        "cost_nano": None if event.cost_nano is None else min(event.cost_nano, MOST_NANO),
        "labels": labels.decode(),
    }
    return Entry(entry_id, text, tuple(map(values.__getitem__, COLUMNS)))


def _check_texts(event: UsageEvent, labels: bytes, *, may_hold_nul: bool) -> None:
    for name in TEXTS:
        value = getattr(event, name)
        if value is not None and (len(value) > LONGEST_TEXT or (may_hold_nul and "\x00" in value)):
            raise BadEvent(f"{name} is longer than {LONGEST_TEXT} characters or holds a NUL")
    for name in NAMES:
        if not getattr(event, name):
            raise BadEvent(f"{name} is empty")
    if len(event.currency) != 3 or not (event.currency.isascii() and event.currency.isupper()):
        raise BadEvent("currency is not a code of three letters")
    if event.status not in _STATUSES:
        raise BadEvent(f"status is not one of {', '.join(Status.values)}")
    if event.usage_source not in _SOURCES:
        raise BadEvent(f"usage_source is not one of {', '.join(UsageSource.values)}")
    holds_nul = may_hold_nul and "\x00" in "".join([*event.labels, *event.labels.values()])
    if holds_nul or len(labels) > LARGEST_LABELS:
        raise BadEvent(f"labels are larger than {LARGEST_LABELS} bytes or hold a NUL")


def _check_numbers(event: UsageEvent) -> None:
    for name in TOKENS:
        least = 0 if event.part == 0 else -MOST_TOKENS
        if not least <= getattr(event, name) <= MOST_TOKENS:
            raise BadEvent(f"{name} is not within {least} and {MOST_TOKENS}")
    if event.part == 0 and event.cached_input_tokens > event.input_tokens:
        raise BadEvent("cached_input_tokens are more than input_tokens, of which they are a part")
    if event.part == 0 and event.reasoning_tokens > event.output_tokens:
        raise BadEvent("reasoning_tokens are more than output_tokens, of which they are a part")
    for name in ("part", "fallback"):
        if not 0 <= getattr(event, name) <= LARGEST_SMALL:
            raise BadEvent(f"{name} is not within 0 and {LARGEST_SMALL}")
    for name in DURATIONS:
        value = getattr(event, name)
        if value is not None and not 0 <= value <= LONGEST_MS:
            raise BadEvent(f"{name} is negative or too long")


def _admitted(event: UsageEvent) -> tuple[UUID, datetime]:
    """The id and the moment inside it, which the event must state as its `admitted_at`."""
    try:
        request_id = UUID(event.request_id)
    except ValueError:
        raise BadEvent("request_id is not a UUID") from None
    if request_id.version != 7 or admitted_ms(request_id) > LATEST_MS:
        raise BadEvent("request_id is not a UUIDv7 of our age")
    admitted_at = _EPOCH + timedelta(milliseconds=admitted_ms(request_id))
    if _moment("admitted_at", event.admitted_at) != admitted_at:
        raise BadEvent("admitted_at is not the millisecond inside request_id")
    return request_id, admitted_at


def _moment(name: str, text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadEvent(f"{name} is not a time") from None
    if moment.tzinfo is None:
        raise BadEvent(f"{name} has no zone")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise BadEvent(f"{name} is before the first year or after the last") from None


def _cost(event: UsageEvent) -> Decimal | None:
    """The exact cost, with its ceiling in 1e-9 units beside it. Only a correction's may be negative: a difference."""
    if event.cost is None:
        if event.cost_nano is not None:
            raise BadEvent("cost_nano without a cost")
        if event.rates is not None:
            raise BadEvent("rates without a cost")
        return None
    if not _COST.fullmatch(event.cost) or (event.part == 0 and event.cost.startswith("-")):
        raise BadEvent("cost is not a decimal of at most 12 places")
    cost = Decimal(event.cost)
    if event.part == 0 and (event.cost_nano is None or min(event.cost_nano, MOST_NANO) != nano(cost)):
        raise BadEvent("cost_nano is not the ceiling of cost in 1e-9 units")
    least_nano = 0 if event.part == 0 else -MOST_NANO
    if event.cost_nano is not None and not least_nano <= event.cost_nano < 2**63:
        raise BadEvent("cost_nano is negative or too large")
    if event.rates is not None and not _is_at_rates(event, cost):
        raise BadEvent("cost is not what the tokens cost at the rates")
    return cost


def _is_at_rates(event: UsageEvent, cost: Decimal) -> bool:
    try:
        return Decimal(priced(event).cost or 0) == cost
    except ArithmeticError:  # rates of more places than a price can have, or no numbers
        return False
