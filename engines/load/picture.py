"""The fleet as a process that routes sees it: read from Redis, and never taken for fresher than it is.

`of` is a replica's load, None where it is unknown: unknown is not idle. `usable` and `weight` say whether, and with
what share, it should get new requests. Without a collector every replica is usable with its full share.
"""

import asyncio
import time
from contextlib import suppress

import msgspec
import redis
import redis.asyncio

from engines.load.figures import KEPT_SECONDS, KEY, STALE_SECONDS, Fleet, Load, Report, State, decode

REFRESH_SECONDS = 0.5


class Picture:
    """What the collector published last, as this process read it. Names are `pool/replica`."""

    def __init__(self, client: "redis.asyncio.Redis") -> None:
        self._redis = client
        self._fleet = Fleet(0)
        self._capacities: dict[str, int] = {}
        self._offset = 0.0  # Redis's clock minus ours, in seconds

    async def follow(self) -> None:
        """Refresh for ever. While Redis is away the picture grows stale by itself."""
        while True:
            with suppress(redis.RedisError):  # told by whoever cannot work without; here nothing is known then
                await self.refresh()
            await asyncio.sleep(REFRESH_SECONDS)

    async def refresh(self) -> None:
        """Read the picture once. Raises RedisError."""
        async with self._redis.pipeline(transaction=False) as pipeline:
            pipeline.get(KEY)
            pipeline.time()
            text, (seconds, micros) = await pipeline.execute()
        self._offset = int(seconds) + int(micros) / 1e6 - time.monotonic()
        if text is None:
            self._fleet = Fleet(0)
            return
        try:
            self._fleet = decode(text)
        except msgspec.MsgspecError:  # one of another version: nothing is known
            self._fleet = Fleet(0)
        for name, report in self._fleet.replicas.items():
            if report.load is not None and report.load.kv_capacity:
                self._capacities[name] = report.load.kv_capacity

    @property
    def now_ms(self) -> int:
        """Redis's clock, as far as it was seen."""
        return int((time.monotonic() + self._offset) * 1000)

    @property
    def fleet(self) -> Fleet:
        """All of it, if it is recent enough to say anything; else an empty one."""
        is_kept = self.now_ms - self._fleet.at <= KEPT_SECONDS * 1000
        return self._fleet if is_kept else Fleet(0)

    def report(self, replica: str) -> Report | None:
        return self.fleet.replicas.get(replica)

    def of(self, replica: str) -> Load | None:
        """Its load, at most STALE_SECONDS old; None: unknown."""
        report = self._fleet.replicas.get(replica)
        if report is None or report.at is None or self.now_ms - report.at > STALE_SECONDS * 1000:
            return None
        return report.load

    def capacity(self, replica: str) -> int | None:
        """The tokens its KV cache takes, as last told: unlike a load this grows no staler. None: it never told."""
        return self._capacities.get(replica)

    def state(self, replica: str) -> State | None:
        """None: unknown, as of a provider."""
        report = self.report(replica)
        return report.state if report else None

    def usable(self, replica: str) -> bool:
        """Whether it should get new requests."""
        return self.state(replica) in {None, State.READY}

    def last_resort(self, replica: str) -> bool:
        """Whether it may be tried where no other is usable: it failed before, but something listens there."""
        return self.state(replica) in {State.EJECTED, State.STARTING}

    def weight(self, replica: str) -> float:
        """0..1: its share of new requests beside a ready replica's 1. Low after a recovery, or while its health
        hangs."""
        report = self.report(replica)
        return report.weight if report else 1.0
