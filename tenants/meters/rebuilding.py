"""Setting counters to what the ledger, the stream and the holds say, while requests come and go.

Redis runs one script at a time, so no script may read all holds. They and the stream are read from outside, a piece at
a time; which holds were read, and what each holds of the counters, is noted in Redis, with an end of its own. The last
script (lua/rebuild.lua) sets the counters, in one step, to what was read, less the holds that have ended since, and
more by those that began and by new entries of the stream. What a hold takes of a budget never changes while it lives,
and an entry stays in the stream as long as the caller keeps drains out: so the sums are exact at the instant of that
step.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar, cast

import msgspec
import redis

from headrace_core import store_keys
from tenants.meters.holds import HOLDS, USAGE
from tenants.meters.meter import MOST_NANO
from tenants.meters.scope import Scope
from tenants.meters.scripts import ADOPT, REBUILD, Argument

MOST = MOST_NANO  # more is counted as this much
_AT_ONCE = 200  # holds, or entries, in one piece
_KEPT_SECONDS = 300  # what was read, after its reader died
_PASSES = 8  # after which what is new is no longer read ahead


class Wanted(msgspec.Struct, frozen=True):
    """A counter to be made: whose use it counts ("" = any) in [first, last), ISO 8601 as events have it.

    ledger: the nano-units on record for it, which may be negative after an adjustment. expires_ms: epoch, None: never.
    """

    key: str
    tenant: str
    project: str
    api_key: str
    model: str
    first: str
    last: str
    ledger: int
    expires_ms: int | None

    def counts(self, event: dict[str, Any]) -> bool:
        """Whether a request of this record counts in it; its tenant is the same."""
        request = Scope(event.get("project", ""), event.get("key", ""), event.get("model", ""))
        covers = Scope(self.project, self.api_key, self.model).covers(request)
        return covers and self.first <= event["admitted_at"] < self.last


def rebuild(client: "redis.Redis", wanted: Sequence[Wanted]) -> None:
    """Set the counters; may be repeated. The caller keeps drains out, from before it read `ledger` until the end."""
    while wanted and not _Reading(client, wanted).set_counters():
        pass  # Redis lost what had been read: once more


class _Reading:
    """What was read of one rebuild."""

    def __init__(self, client: "redis.Redis", wanted: Sequence[Wanted]) -> None:
        self._redis, self._wanted = client, wanted
        self._number = {one.key: number for number, one in enumerate(wanted)}
        self._of_tenant: dict[str, list[Wanted]] = {}
        for one in wanted:
            self._of_tenant.setdefault(one.tenant, []).append(one)
        self._spent, self._held = [one.ledger for one in wanted], [0] * len(wanted)
        self._ids: set[bytes] = set()
        self._last = "0-0"
        self._names: set[str] = set()
        name = store_keys.REBUILD + os.urandom(8).hex()
        self._seen, self._weights, self._entries = f"{name}:seen", f"{name}:weights", f"{name}:entries"

    def set_counters(self) -> bool:
        """Read, then set; False where Redis lost what had been read."""
        self._redis.hset(self._weights, "", "")  # it is there, whatever there is to read
        self._redis.expire(self._weights, _KEPT_SECONDS)
        for ids in _batched((id for id, _ in self._redis.zscan_iter(HOLDS, count=_AT_ONCE)), _AT_ONCE):
            self._read_holds(ids)
        most, passes = _AT_ONCE // 2, 0
        while True:
            born = cast("list[bytes]", self._redis.zdiff([HOLDS, self._seen]))
            for ids in _batched(born, _AT_ONCE):
                self._read_holds(ids)
            self._read_entries()
            match REBUILD.call_sync(self._redis, *self._arguments(most)):
                case b"set":
                    return True
                case b"lost":
                    return False
            passes += 1
            most = most if passes < _PASSES else most * 2

    def _arguments(self, most: int) -> tuple[list[str], list[Argument]]:
        keys = [HOLDS, USAGE, self._seen, self._weights, self._entries, *self._number]
        arguments: list[Argument] = [self._last, most]
        for one, spent, held in zip(self._wanted, self._spent, self._held, strict=True):
            arguments += [max(-MOST, min(MOST, spent)), min(MOST, held)]
            arguments += [one.tenant, one.project, one.api_key, one.model, one.first, one.last]
            arguments.append("" if one.expires_ms is None else one.expires_ms)
        return keys, arguments

    def _matching(self, event: dict[str, Any]) -> list[Wanted]:
        return [one for one in self._of_tenant.get(event.get("tenant", ""), ()) if one.counts(event)]

    def _read_holds(self, ids: list[bytes]) -> None:
        with self._redis.pipeline(transaction=False) as pipeline:
            for id in ids:
                pipeline.hmget(store_keys.HOLD.encode() + id, ["record", "meters", "cost"])
            holds: list[Any] = pipeline.execute(raise_on_error=False)
        weights: dict[bytes, str] = {}
        read: list[bytes] = []
        adopted: list[list[Argument]] = []
        for id, hold in zip(ids, holds, strict=True):
            record, meters, cost = (None, None, None) if isinstance(hold, redis.ResponseError) else hold
            if record is None or meters is None or id in self._ids:
                continue  # it has ended since, or is none; or the index told it twice
            self._ids.add(id)
            read.append(id)
            amounts = {key: amount for key, amount in _amounts(meters) if key in self._number}
            if cost is not None and cost.isdigit():
                fresh = [one.key for one in self._matching(_decoded(record)) if one.key not in amounts]
                amounts |= dict.fromkeys(fresh, cost.decode())
                adopted += [[id, cost, *some] for some in _batched(fresh, _AT_ONCE)]
            for key, amount in amounts.items():
                self._held[self._number[key]] += int(amount)
            if amounts:
                weights[id] = ",".join(f"{self._number[key]}:{amount}" for key, amount in amounts.items())
        if not read:
            return
        for some in adopted:
            ADOPT.call_sync(self._redis, [], some)
        with self._redis.pipeline(transaction=False) as pipeline:
            pipeline.zadd(self._seen, dict.fromkeys(read, 0))
            if weights:
                pipeline.hset(self._weights, mapping=cast("Any", weights))
            for key in (self._seen, self._weights):
                pipeline.expire(key, _KEPT_SECONDS)
            pipeline.execute()

    def _read_entries(self) -> None:
        while entries := cast("list[Any]", self._redis.xrange(USAGE, min=f"({self._last}", count=_AT_ONCE)):
            names = []
            for id, fields in entries:
                self._last = id.decode()
                event = _decoded(fields.get(b"e", b""))
                cost, name = event.get("cost_nano"), f"{event.get('request_id')}/{event.get('part')}"
                if isinstance(cost, int) and name not in self._names:
                    self._names.add(name)
                    names.append(name)
                    for one in self._matching(event):
                        self._spent[self._number[one.key]] += cost
            if names:
                self._redis.sadd(self._entries, *names)
                self._redis.expire(self._entries, _KEPT_SECONDS)


def _decoded(text: bytes) -> dict[str, Any]:
    """A record or an event; empty where it is none."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    is_record = isinstance(value, dict) and all(isinstance(value.get(name), str) for name in ("admitted_at", "tenant"))
    return value if is_record else {}


def _amounts(meters: bytes) -> Iterator[tuple[str, str]]:
    """Of each meter of a hold its key and what is held of it; without those of another version's forms."""
    try:
        rows = msgspec.json.decode(meters)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, list) and len(row) > 3 and isinstance(row[1], str) and str(row[3]).isdigit():
            yield row[1], str(row[3])


_T = TypeVar("_T")


def _batched(things: Iterable[_T], size: int) -> Iterator[list[_T]]:
    things = iter(things)
    while some := list(islice(things, size)):
        yield some
