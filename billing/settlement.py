"""The settlement of record: the reaper, which settles what no process settles any more, and the late corrections.

A request's own process settles it in the normal case (the gateway's settler.py). When that process died or froze past
its lease, the reaper settles with the last progress it reported. When it comes back after all, the difference is
appended as a correction: record and correction together are what the client received, in every class of tokens. Where
the progress was an estimate, the difference may be less than nothing: what was charged too much is given back.
"""

import logging
import time

import msgspec
import redis

from billing.usage import VERSION, Progress, UsageEvent, iso, priced
from tenants.meters import aside, holds
from tenants.meters.meter import COST, INPUT_TOKENS, OUTPUT_TOKENS

log = logging.getLogger("headrace.ledger")

_encode = msgspec.json.encode
_NOTHING = {INPUT_TOKENS: 0, OUTPUT_TOKENS: 0, COST: 0}
# What comes of a hold that no version of ours wrote: a script that fails, figures that are none, endless nesting.
_BROKEN = (redis.ResponseError, ValueError, TypeError, ArithmeticError, RecursionError)
_TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens")


class Remembered(msgspec.Struct):
    """What a reaper charged, kept in the tombstone for the request's own late word.

    limited_input_tokens: what limits were charged of the input (Progress); None: all of it.
    """

    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    reasoning_tokens: int
    limited_input_tokens: int | None = None


def reap_expired(client: "redis.Redis", *, lease_seconds: float) -> int:
    """Settle every hold whose lease ran out; how many were settled. May run twice, anywhere, at any time.

    For one lease after Redis started, or thawed, nothing is reaped: no process could renew while it was away.
    """
    is_calm = holds.may_reap(client, lease_ms=int(lease_seconds * 1000))
    if not is_calm or client.info("server")["uptime_in_seconds"] < lease_seconds:
        return 0
    aside.read(client)  # forgets those that were settled meanwhile
    settled = 0
    while batch := holds.expired(client):
        done = [_reap_alone(client, hold) for hold in batch]
        settled += done.count("settled")
        if not {"settled", "aside"} & set(done):
            break  # all renewed since they were read
    return settled


def _reap_alone(client: "redis.Redis", hold: holds.ExpiredHold) -> str:
    """Reap one hold; "aside" for one that cannot be, whatever it is in it: all others are reaped nevertheless."""
    try:
        said = _reap(client, hold)
        why = "its record, or a meter of it, is of a form that this version does not know"
    except _BROKEN as error:
        said, why = "unknown", f"{type(error).__name__}: {error}"
    if said != "unknown":
        return said
    if aside.set_aside(client, hold.request_id, why):
        log.error("the hold of %s is set aside: %s", hold.request_id, why)
    return "aside"


def _reap(client: "redis.Redis", hold: holds.ExpiredHold) -> str:
    try:
        event = msgspec.json.decode(hold.record, type=UsageEvent)
        progress = msgspec.json.decode(hold.progress, type=Progress) if hold.progress else None
    except msgspec.DecodeError as error:
        # Of another version, or broken. Its meters are given back all the same, and the drain buries the record.
        log.error("the hold of %s cannot be read: %s", hold.request_id, error)
        return holds.reap(
            client,
            request_id=hold.request_id,
            used=_NOTHING,
            event=hold.record,
            memory=_encode(Remembered(0, 0, 0, 0)).decode(),
        )
    if event.v != VERSION:
        return "unknown"  # what it means, its own version knows
    event.finished_at = iso(time.time() * 1000)
    if progress:
        event.status = "reaped"
        event.input_tokens, event.cached_input_tokens = progress.input_tokens, progress.cached_input_tokens
        event.output_tokens, event.reasoning_tokens = progress.output_tokens, progress.reasoning_tokens
        event.usage_source, event.ttft_ms = progress.usage_source, progress.ttft_ms
        event.upstream_id, event.replica = progress.upstream_id, progress.replica or event.replica
        if progress.target:  # another than at admission may have served it
            event.target, event.price, event.rates = progress.target, progress.price, progress.rates
        event = priced(event)
        limited = event.input_tokens if progress.limited_input_tokens is None else progress.limited_input_tokens
        used = {INPUT_TOKENS: limited, OUTPUT_TOKENS: event.output_tokens, COST: event.cost_nano or 0}
    else:
        event.status = "abandoned"  # its upstream was never opened: all goes back
        event, used = priced(event), _NOTHING
    memory = _remembered(event, used[INPUT_TOKENS])
    return holds.reap(client, request_id=hold.request_id, used=used, event=_encode(event), memory=memory)


def _remembered(event: UsageEvent, limited: int) -> str:
    return _encode(
        Remembered(event.input_tokens, event.cached_input_tokens, event.output_tokens, event.reasoning_tokens, limited)
    ).decode()


def remembered(tombstone: str) -> Remembered:
    """What a reaper charged, from its tombstone."""
    return msgspec.json.decode(tombstone.removeprefix("reaped:"), type=Remembered)


def correction(event: UsageEvent, reaped: Remembered) -> UsageEvent | None:
    """What `event` says beyond that which a reaper charged: signed differences; None if there are none."""
    differences = {name: getattr(event, name) - getattr(reaped, name) for name in _TOKENS}
    return priced(msgspec.structs.replace(event, part=1, **differences)) if any(differences.values()) else None
