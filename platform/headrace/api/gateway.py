"""What one web process owns: its picture of the configuration, its Redis and upstream clients, its running requests."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

import redis.asyncio
from django.conf import settings
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from engines.client import Client
from headrace.api.estimate import Estimator
from headrace.api.pulse import Pulse
from headrace.api.settler import Settler
from headrace.api.snapshot import Snapshot
from headrace.api.spool import Spool
from routing.selection import InFlight

log = logging.getLogger("headrace.gateway")

_REDIS_CONNECTIONS = 64


def connect_redis(url: str, timeout: float) -> "redis.asyncio.Redis":
    """A client whose every call ends within about three `timeout`s: waiting for a connection, one try, one more.

    A second try is safe: every script of tenants/meters may be repeated.
    """
    pool = redis.asyncio.BlockingConnectionPool.from_url(
        url,
        max_connections=_REDIS_CONNECTIONS,
        timeout=timeout,
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        retry=Retry(NoBackoff(), 1),
        protocol=2,
        lib_name=None,
        lib_version=None,
    )
    return redis.asyncio.Redis.from_pool(pool)


class Gateway:
    """Composed once per process and event loop. `start` begins its loops; `stop` ends them and settles what runs."""

    def __init__(self) -> None:
        self.redis = connect_redis(settings.REDIS_URL, settings.REDIS_TIMEOUT)
        self.headers_after = settings.HEADERS_AFTER_SECONDS
        self.lease_ms = int(settings.LEASE_SECONDS * 1000)
        self.client = Client()
        self.snapshot = Snapshot(settings.DATABASE_URL)
        self.estimator = Estimator()
        self.in_flight = InFlight()
        self.spool = Spool(settings.HOME / "spool", self.redis)
        self.pulse = Pulse(self.redis, self.estimator, lease_seconds=settings.LEASE_SECONDS)
        self.settler = Settler(
            client=self.client,
            estimator=self.estimator,
            in_flight=self.in_flight,
            pulse=self.pulse,
            redis=self.redis,
            spool=self.spool,
        )
        self.is_stopping = False
        self._loops: list[asyncio.Task[None]] = []
        self._background: set[asyncio.Task[Any]] = set()

    def start(self) -> None:
        """Begin to follow the configuration, renew leases and deliver the spool."""
        for loop in (self.snapshot.follow(), self.pulse.watch(), self.pulse.renew_for_ever(), self.spool.deliver()):
            self._loops.append(asyncio.create_task(loop))

    def background(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Run `work` to its end whatever becomes of the caller."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("background work failed", exc_info=error)

    async def stop(self, *, patience: float) -> None:
        """Let running requests finish for `patience` seconds, interrupt and settle the rest, close everything."""
        self.is_stopping = True
        await self.pulse.drained(patience)
        await self.settler.settled()
        if self._background:
            await asyncio.wait(set(self._background), timeout=5)
        for task in self._loops:
            task.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        await self.client.close()
        await self.redis.aclose()
