"""The collector's work in Postgres: one thread, one task after the other, so that a slow database delays no figures."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import Error, connection

from engines.load import hours, samples
from engines.load.fleet import Member, members
from engines.load.samples import Sample

log = logging.getLogger("headrace.load")

_FLEET_SECONDS = 1.0
_HOURS_SECONDS = 60.0
_PARTITIONS_SECONDS = 3600.0
# Samples of an outage are written after it: half an hour of a hundred replicas.
_MOST_WAITING = 20_000

T = TypeVar("T")


class Store:
    """`members` is the fleet as last read, None before; `add` takes samples to be written."""

    def __init__(self) -> None:
        self.members: list[Member] | None = None
        self._waiting: deque[Sample] = deque(maxlen=_MOST_WAITING)
        self._thread = ThreadPoolExecutor(1, "collector-database")
        self._due: dict[Callable[[], object], float] = {}
        self._is_away = False

    def add(self, taken: list[Sample]) -> None:
        self._waiting.extend(taken)

    async def keep_up(self) -> None:
        """Read the fleet, write samples and their hours, for ever; told once when the database is away."""
        while True:
            try:
                await self.once()
                self._is_away = False
            except Error as error:
                if not self._is_away:
                    log.warning("the database does not answer: %s", str(error).partition("\n")[0])
                self._is_away = True
                await self._run(_close)
            await asyncio.sleep(_FLEET_SECONDS)

    async def once(self) -> None:
        """One round. Raises django.db.Error, with nothing lost."""
        self.members = await self._run(members)
        await self._every(_PARTITIONS_SECONDS, samples.keep_partitions)
        if self._waiting:
            taken = list(self._waiting)
            await self._run(lambda: samples.write(taken))
            for _ in taken:
                self._waiting.popleft()
        await self._every(_HOURS_SECONDS, hours.roll_up_since_last)

    async def close(self) -> None:
        await self._run(_close)
        self._thread.shutdown()

    async def _every(self, period: float, work: Callable[[], object]) -> None:
        if time.monotonic() >= self._due.get(work, 0):
            await self._run(work)
            self._due[work] = time.monotonic() + period

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _close() -> None:
    connection.close()  # looked up here, as each thread has its own
