"""What is on its way to the ledger: holds in Redis, and final words that wait on this machine's disk."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import redis

from headrace_core import store_keys
from tenants.meters.holds import HOLDS

MOST = 2000  # holds that are looked into, those whose leases end first


class _Record(msgspec.Struct):
    tenant: str


class _Event(msgspec.Struct):
    finished_at: str


class _Word(msgspec.Struct):
    event: _Event


@dataclass(frozen=True, slots=True)
class Holds:
    """How many there are and how many outlived their lease. Of at most MOST: by tenant, (how many, the oldest's ms)."""

    count: int
    lapsed: int
    looked_into: int
    by_tenant: dict[str, tuple[int, int]]

    @property
    def oldest_ms(self) -> int | None:
        return min((oldest for _, oldest in self.by_tenant.values()), default=None)


@dataclass(frozen=True, slots=True)
class Spooled:
    """One process's file. `oldest`: when its first request ended; None: its first line cannot be read.

    is_aside: it has what cannot be delivered, and waits for an operator.
    """

    name: str
    words: int
    oldest: datetime | None

    @property
    def is_aside(self) -> bool:
        return self.name.endswith(".aside")


def holds(client: "redis.Redis", now_ms: int) -> Holds:
    """Raises redis.RedisError."""
    with client.pipeline(transaction=False) as pipeline:
        pipeline.zcard(HOLDS)
        pipeline.zcount(HOLDS, "-inf", now_ms)
        pipeline.zrange(HOLDS, 0, MOST - 1)
        count, lapsed, ids = pipeline.execute()
    with client.pipeline(transaction=False) as pipeline:
        for request_id in ids:
            pipeline.hget(store_keys.HOLD + request_id.decode(), "record")
        records = pipeline.execute() if ids else []
    return Holds(count, lapsed, len(ids), _by_tenant(zip(ids, records, strict=True)))


def _by_tenant(found: Iterable[tuple[bytes, Any]]) -> dict[str, tuple[int, int]]:
    """The tenants that hold most first; holds that ended meanwhile are left out."""
    times: dict[str, list[int]] = defaultdict(list)
    for request_id, record in found:
        if record is not None:
            times[_tenant(record)].append(UUID(request_id.decode()).int >> 80)
    counted = {tenant: (len(each), min(each)) for tenant, each in times.items()}
    return dict(sorted(counted.items(), key=lambda one: (-one[1][0], one[0])))


def _tenant(record: bytes) -> str:
    try:
        return msgspec.json.decode(record, type=_Record).tenant
    except msgspec.MsgspecError:
        return "unreadable"  # of another version: the reaper gives it back all the same


def spooled(directory: Path) -> list[Spooled]:
    """The files of this home's web processes, the oldest word first."""
    paths = [*directory.glob("*.jsonl"), *directory.glob("*.aside")]
    files = [file for path in paths if (file := _file(path)) is not None]
    return sorted(files, key=lambda file: (file.oldest is not None, file.oldest, file.name))


def _file(path: Path) -> Spooled | None:
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return None  # delivered meanwhile
    if not lines:
        return None
    try:
        oldest = datetime.fromisoformat(msgspec.json.decode(lines[0], type=_Word).event.finished_at)
    except (msgspec.MsgspecError, ValueError):
        oldest = None
    return Spooled(path.name, len(lines), oldest)
