"""What requests have their replicas do beside the room they take: the work in hand, as all processes know it.

Each decode step reads the KV of every token its requests attend to, whoever computed it, and no step decodes while a
prompt is read. A fleet that balances only what requests bring piles those with long cached prefixes onto one replica,
which then decodes slowest of all.

Each process tells its own sums in one Redis hash and reads those of the others. Nobody gives back what another took, so
nothing can leak: a process that is gone stops telling, and is no longer counted after STALE_SECONDS.
"""

import secrets
import time
from collections import defaultdict
from typing import Any

import msgspec
import redis.asyncio

from headrace_core import store_keys

KEY = store_keys.WORK
STALE_SECONDS = 2.0
# The hash goes where all processes went.
_KEPT_SECONDS = 10


class AttentionLoad(msgspec.Struct, array_like=True, frozen=True):
    """Tokens of prompts. cached: in the replica's cache, for as long as their requests run; they take no room again.
    pending_prefill: not in it, of requests that have no first byte yet."""

    cached: int = 0
    pending_prefill: int = 0

    def __add__(self, other: "AttentionLoad") -> "AttentionLoad":
        return AttentionLoad(self.cached + other.cached, self.pending_prefill + other.pending_prefill)

    def __sub__(self, other: "AttentionLoad") -> "AttentionLoad":
        return AttentionLoad(self.cached - other.cached, self.pending_prefill - other.pending_prefill)


class _Told(msgspec.Struct, array_like=True, frozen=True):
    """`turn` grows with each telling, so that readers know a living process without comparing clocks."""

    turn: int
    work: dict[str, AttentionLoad]


_NONE = AttentionLoad()
_encode = msgspec.msgpack.encode
_decoder = msgspec.msgpack.Decoder(_Told)


class SharedAttentionLoad:
    def __init__(self) -> None:
        self._origin = secrets.token_bytes(8)
        self._turn = 0
        self._own: dict[str, AttentionLoad] = {}
        self._heard: dict[bytes, tuple[_Told, float]] = {}  # with the time of the first reading
        self._others: dict[str, AttentionLoad] = {}

    def of(self, replica: str) -> AttentionLoad:
        """That of all its requests, as far as is known here."""
        return self._own.get(replica, _NONE) + self._others.get(replica, _NONE)

    def enter(self, replica: str, work: AttentionLoad) -> None:
        """A request of this process goes there."""
        self._own[replica] = self._own.get(replica, _NONE) + work

    def leave(self, replica: str, work: AttentionLoad) -> None:
        """So much of what was entered is done."""
        left = self._own.get(replica, _NONE) - work
        if left == _NONE:
            self._own.pop(replica, None)
        else:
            self._own[replica] = left

    async def refresh(self, client: "redis.asyncio.Redis") -> None:
        """Tell and read. Raises redis.RedisError; what is known stays then."""
        self._turn += 1
        async with client.pipeline(transaction=False) as pipeline:
            pipeline.hset(KEY, self._origin, _encode(_Told(self._turn, self._own)))
            pipeline.expire(KEY, _KEPT_SECONDS)
            pipeline.hgetall(KEY)
            *_, told = await pipeline.execute()
        if gone := self._take(told):
            await client.hdel(KEY, *gone)

    async def read(self, client: "redis.asyncio.Redis") -> None:
        """Read without telling, for who only looks. Raises redis.RedisError."""
        self._take(await client.hgetall(KEY))

    def _take(self, told: dict[Any, Any]) -> list[bytes]:
        """Count the living; those who are gone."""
        now, heard, gone = time.monotonic(), {}, []
        for origin, data in told.items():
            if origin == self._origin:
                continue
            try:
                said = _decoder.decode(data)
            except msgspec.DecodeError:  # of another version of this program
                continue
            before = self._heard.get(origin)
            one = before if before is not None and before[0].turn == said.turn else (said, now)
            if now - one[1] > STALE_SECONDS:
                gone.append(origin)
            else:
                heard[origin] = one
        self._heard = heard
        others: defaultdict[str, AttentionLoad] = defaultdict(AttentionLoad)
        for said, _ in heard.values():
            for name, work in said.work.items():
                others[name] += work
        self._others = dict(others)
        return gone
