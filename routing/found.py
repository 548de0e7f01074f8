"""The prompt tokens that running requests found in their replicas' caches: no room of their own, yet work.

Each decode step reads the KV of every token its requests attend to, whoever computed it. A fleet that balances only
what requests bring piles those with long cached prefixes onto one replica, which then decodes slowest of all.

Each process tells its own sums in one Redis hash and reads those of the others. Nobody gives back what another took, so
nothing can leak: a process that is gone stops telling, and is no longer counted after STALE_SECONDS.
"""

import secrets
import time
from collections import Counter
from typing import Any

import msgspec
import redis.asyncio

KEY = "hr:found"
STALE_SECONDS = 2.0
# The hash goes where all processes went.
_KEPT_SECONDS = 10


class _Told(msgspec.Struct, array_like=True, frozen=True):
    """`turn` grows with each telling, so that readers know a living process without comparing clocks."""

    turn: int
    tokens: dict[str, int]


class _Heard(msgspec.Struct):
    told: _Told
    at: float


_encode = msgspec.msgpack.encode
_decoder = msgspec.msgpack.Decoder(_Told)


class FoundTokens:
    def __init__(self) -> None:
        self._origin = secrets.token_bytes(8)
        self._turn = 0
        self._own: Counter[str] = Counter()
        self._heard: dict[bytes, _Heard] = {}
        self._others: Counter[str] = Counter()

    def tokens(self, replica: str) -> int:
        """What all its requests found, as far as is known here; never negative."""
        return max(0, self._own[replica]) + self._others[replica]

    def enter(self, replica: str, tokens: int) -> None:
        """A request of this process goes there and is believed to find so much."""
        self._own[replica] += tokens

    def leave(self, replica: str, tokens: int) -> None:
        """And is over."""
        self._own[replica] -= tokens

    async def refresh(self, client: "redis.asyncio.Redis") -> None:
        """Tell and read. Raises redis.RedisError; what is known stays then."""
        self._turn += 1
        own = {name: tokens for name, tokens in self._own.items() if tokens > 0}
        async with client.pipeline(transaction=False) as pipeline:
            pipeline.hset(KEY, self._origin, _encode(_Told(self._turn, own)))
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
            one = before if before is not None and before.told.turn == said.turn else _Heard(said, now)
            if now - one.at > STALE_SECONDS:
                gone.append(origin)
            else:
                heard[origin] = one
        self._heard = heard
        self._others = Counter()
        for one in heard.values():
            self._others.update(one.told.tokens)
        return gone
