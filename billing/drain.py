"""From the stream to the ledger: what settlement appended to `hr:usage` becomes records, each once.

A batch is read, written in one transaction, and only then acknowledged and deleted. So a crash at any line leaves the
batch to be read again, and the ledger takes a record once. Any number of drains may run at a time, on any machine.
"""

import logging
import time
from dataclasses import dataclass
from datetime import date
from typing import Any

import redis

from billing import drain_lock, partitions
from billing.budgets.recounting import Use, recount
from billing.dead_letters import BURIED, bury
from billing.events import COLUMNS, BadEvent, Entry, read_event
from billing.ledger import touch_keys, write_all_good
from billing.repricing import PriceList
from tenants.meters.holds import USAGE

GROUP = "ledger"
# All drains read under one name: what a dead one leaves is claimed by the next, and no name is left over.
CONSUMER = "drain"
_LIST = PriceList()
BATCH = 2000
ABANDONED_MS = 10_000
log = logging.getLogger("headrace.ledger")


@dataclass(frozen=True)
class Drained:
    """One batch: entries read, of them new in the ledger, known to it before, and dead letters."""

    read: int = 0
    written: int = 0
    known: int = 0
    dead: int = 0


def drain_all(client: "redis.Redis", *, seconds: float = 20) -> int:
    """Drain batch after batch until the stream has nothing new or `seconds` are over; how many records are new."""
    deadline, written = time.monotonic() + seconds, 0
    while (batch := drain_once(client)).read and time.monotonic() < deadline:
        written += batch.written
    return written + batch.written


def drain_once(client: "redis.Redis", *, most: int = BATCH, abandoned_ms: int = ABANDONED_MS) -> Drained:
    """Drain a batch of at most `most` entries: those that a drain read `abandoned_ms` ago and left, else new ones.

    Raises django.db.OperationalError or redis.RedisError when one of the two is away; the batch is then read again.
    """
    with drain_lock.shared():
        return _drain(client, most, abandoned_ms)


def drain_pending(client: "redis.Redis") -> None:
    """Drain all there is, read by whom ever: for whoever holds the drain lock alone, so that nobody is at work."""
    while drain_once(client, abandoned_ms=0).read >= BATCH:
        pass


def _drain(client: "redis.Redis", most: int, abandoned_ms: int) -> Drained:
    read = _read(client, most, abandoned_ms)
    if not read:
        return Drained()
    entries, dead = _sort_out(read)
    entries, repriced = _LIST.put_right(entries)
    written, refused = write_all_good(entries)
    dead += [(entry.id, entry.text, reason) for entry, reason in refused]
    buried = bury(dead)
    if buried:
        client.incrby(BURIED, buried)
    _acknowledge(client, [entry_id for entry_id, _ in read])
    if entries:
        touch_keys(entries)
    if repriced:
        log.warning("%d requests were admitted by an old price list and pay the right price", len(repriced))
        recount(client, map(_use, repriced))
    return Drained(len(read), written, len(read) - written - buried, buried)


def _read(client: "redis.Redis", most: int, abandoned_ms: int) -> list[tuple[str, bytes | None]]:
    """Entries by id, with the event's text."""
    try:
        claimed = client.xautoclaim(USAGE, GROUP, CONSUMER, abandoned_ms, count=most)[1]
        entries = claimed or _read_new(client, most)
    except redis.ResponseError as error:
        if "NOGROUP" not in str(error):
            raise
        _create_group(client)
        return _read(client, most, abandoned_ms)
    return [(entry_id.decode(), fields.get(b"e")) for entry_id, fields in entries]


def _read_new(client: "redis.Redis", most: int) -> list[Any]:
    streams: Any = client.xreadgroup(GROUP, CONSUMER, {USAGE: ">"}, count=most)
    return streams[0][1] if streams else []


def _create_group(client: "redis.Redis") -> None:
    try:
        client.xgroup_create(USAGE, GROUP, id="0", mkstream=True)
    except redis.ResponseError as error:
        if "BUSYGROUP" not in str(error):  # another drain was first
            raise


def _sort_out(read: list[tuple[str, bytes | None]]) -> tuple[list[Entry], list[tuple[str, bytes, str]]]:
    """Rows that the ledger's rules admit, and dead letters."""
    good, housed, dead = [], [], []
    for entry_id, text in read:
        try:
            good.append(read_event(entry_id, text))
        except BadEvent as error:
            dead.append((entry_id, text or b"", str(error)))
    months = _months({partitions.month_of(entry.admitted_at) for entry in good})
    for entry in good:
        if partitions.month_of(entry.admitted_at) in months:
            housed.append(entry)
        else:
            dead.append((entry.id, entry.text, f"no partition for {entry.admitted_at:%Y-%m}"))
    return housed, dead


def _months(needed: set[date]) -> set[date]:
    """The months that have a partition; the present ones are made here if the task for it has not run."""
    months = partitions.existing_months()
    if needed <= months:
        return months
    partitions.ensure_months()
    return partitions.existing_months()


def _use(entry: Entry) -> Use:
    return Use(*(entry.row[COLUMNS.index(name)] for name in ("tenant", "project", "key", "model", "admitted_at")))


def _acknowledge(client: "redis.Redis", ids: list[str]) -> None:
    with client.pipeline(transaction=True) as pipeline:
        pipeline.xack(USAGE, GROUP, *ids)
        pipeline.xdel(USAGE, *ids)
        pipeline.execute()
