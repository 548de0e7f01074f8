"""What one web process owns: its picture of the configuration, its Redis and upstream clients, its running requests."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

import redis.asyncio
from django.conf import settings

from billing.rejections.counting import Refusals
from engines.additions import Unwanted
from engines.client import Client
from engines.load.figures import State
from engines.load.outcomes import Outcomes
from engines.load.picture import REFRESH_SECONDS, Picture
from headrace.gateway.operations.estimate import Estimator
from headrace.gateway.process import metrics
from headrace.gateway.process.engine_readings import Readings
from headrace.gateway.process.heartbeat import Heartbeat
from headrace.gateway.process.large_bodies import LargeBodies
from headrace.gateway.process.placement import Placement
from headrace.gateway.process.quarantine import SharedQuarantine
from headrace.gateway.process.queueing import Queueing
from headrace.gateway.process.redis_client import connect
from headrace.gateway.process.room_lists import RoomLists
from headrace.gateway.process.snapshot import Snapshot
from headrace.gateway.process.store_memory import StoreMemory
from headrace.gateway.process.streamless import Streamless
from headrace.gateway.process.withdrawals import Withdrawals
from headrace.gateway.settlement.settler import Settler
from headrace.gateway.settlement.spool import Spool
from routing.breaker import Breakers
from routing.own_faults import OwnFaults
from routing.retry_budget import RetryBudget
from routing.silences import Silences

log = logging.getLogger("headrace.gateway")

# How long interrupted requests may take to settle and to tell their clients.
_LAST_WORDS_SECONDS = 10.0
_STEP = 0.02
_REPORT_SECONDS = 1.0


class Gateway:
    """Composed once per process and event loop. `start` begins its loops; `stop` ends them and settles what runs."""

    def __init__(self) -> None:
        self.redis = connect(settings.REDIS_URL, settings.REDIS_TIMEOUT)
        self.headers_after = settings.HEADERS_AFTER_SECONDS
        self.lease_ms = int(settings.LEASE_SECONDS * 1000)
        self.client = Client()
        self.snapshot = Snapshot(settings.DATABASE_URL)
        self.estimator = Estimator()
        self.load = Picture(self.redis)
        self.outcomes = Outcomes(self.redis)
        self.refusals = Refusals(self.redis)
        self.placement = Placement(
            settings.SECRET_KEY,
            self.estimator,
            self.redis,
            lambda: self.snapshot.catalog.replica_names,
            Readings(self.load),
        )
        self.breakers = Breakers(failures=settings.BREAKER_FAILURES, told=metrics.tell_breaker)
        self.own_faults = OwnFaults()
        self.silences = Silences()
        self.unwanted = Unwanted()
        self.quarantine = SharedQuarantine(settings.SECRET_KEY, self.redis)
        self.retries = RetryBudget(share=settings.RETRY_PERCENT / 100)
        self.spool = Spool(settings.HOME / "spool", self.redis)
        self.withdrawals = Withdrawals(self.redis)
        self.headroom = StoreMemory(self.redis)
        self.pulse = Heartbeat(self.redis, self.estimator, lease_seconds=settings.LEASE_SECONDS)
        self.rooms = RoomLists(self.snapshot, self.placement.selection, self.breakers)
        self.queueing = Queueing(settings.REDIS_URL, self.redis, self.rooms.of)
        self.settler = Settler(
            client=self.client,
            estimator=self.estimator,
            placing=self.placement,
            pulse=self.pulse,
            queueing=self.queueing,
            redis=self.redis,
            spool=self.spool,
        )
        self.large_bodies = LargeBodies()
        self.streamless = Streamless()
        self.shadows = 0  # copies that run
        self.is_stopping = False
        self.working = 0  # requests whose body has come and whose answer is not all handed to the server
        self._loops: list[asyncio.Task[None]] = []
        self._background: set[asyncio.Task[Any]] = set()

    def start(self) -> None:
        """Begin to follow the configuration, renew leases and deliver the spool."""
        metrics.begin()
        loops = (
            self.snapshot.follow,
            self.pulse.watch,
            self.pulse.renew_for_ever,
            self.spool.deliver_for_ever,
            self.withdrawals.deliver_for_ever,
            self.headroom.watch,
            self.queueing.listen,
            self.queueing.tend_for_ever,
            self.placement.follow_load,
            self.placement.tell_for_ever,
            self.placement.hear_for_ever,
            self.load.follow,
            self.quarantine.follow,
            self._keep_breakers,
            self._report_outcomes,
            self._tell_refusals,
        )
        self._loops = [asyncio.create_task(_kept_going(loop)) for loop in loops]

    async def _keep_breakers(self) -> None:
        """Have breakers hear of the replicas there are, and of those that serve again; for ever."""
        catalog = None
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            if catalog is not self.snapshot.catalog:
                catalog = self.snapshot.catalog
                self.breakers.keep(catalog.upstreams)
                self.own_faults.keep(catalog.upstreams)
                self.silences.keep(catalog.upstreams)
            reports = self.load.fleet.replicas.items()
            self.breakers.see({(name, each.started) for name, each in reports if each.state is State.READY})

    async def _report_outcomes(self) -> None:
        """Tell the collector each second what became of requests, and whose streams deliver; for ever."""
        while True:
            await asyncio.sleep(_REPORT_SECONDS)
            with suppress(redis.RedisError):  # counted on, and told with the next
                await self.outcomes.report(self.pulse.delivering(_REPORT_SECONDS))

    async def _tell_refusals(self) -> None:
        while True:
            await asyncio.sleep(_REPORT_SECONDS)
            with suppress(redis.RedisError):  # told again a second later
                await self.refusals.tell()

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

    async def drain(self, *, patience: float) -> None:
        """Take no more work; let what runs finish for `patience` seconds, then interrupt it. All is settled after."""
        self.is_stopping = True
        deadline = time.monotonic() + patience + _LAST_WORDS_SECONDS
        self.pulse.interrupt_all(copies_only=True)
        is_idle = await self._idle(patience)
        while not is_idle and time.monotonic() < deadline:
            self.pulse.interrupt_all()  # again and again: one may have been on its way through admission
            is_idle = await self._idle(0.1)
        await self.settler.settled()

    async def _idle(self, seconds: float) -> bool:
        for _ in range(round(seconds / _STEP) + 1):
            if not self.working and not len(self.pulse):
                return True
            await asyncio.sleep(_STEP)
        return False

    async def stop(self) -> None:
        """End and settle whatever runs, then close everything. What waits for Redis gets a last try."""
        await self.drain(patience=0)
        await self.spool.deliver_own()
        if self._background:
            await asyncio.wait(set(self._background), timeout=5)
        running = set(self._loops)
        while running:  # more than once: psycopg waits with `asyncio.wait_for`, which Python 3.11 may let swallow it
            for task in running:
                task.cancel()
            _, running = await asyncio.wait(running, timeout=0.5)
        with suppress(redis.RedisError):
            await self.refusals.tell()
        await self.client.close()
        await self.redis.aclose()


async def _kept_going(loop: Callable[[], Awaitable[None]]) -> None:
    """Run one of the process's loops for ever. A defect in one round must not silently end all later ones."""
    while True:
        try:
            await loop()
        except Exception:  # the boundary of a loop: nobody above it is left to see the error
            log.exception("a loop of the gateway failed and begins anew")
            await asyncio.sleep(1.0)
