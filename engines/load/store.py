"""The collector's work in Postgres: one thread, one task after the other, so that a slow database delays no figures.

A task that fails while the database answers is told in the log, once, and ends no other; a sample that the database
refuses is set aside, with a word of it in the log.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connection

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
        self._failed: dict[str, str] = {}  # what the log was told last of each task that fails

    def add(self, taken: list[Sample]) -> None:
        self._waiting.extend(taken)

    async def keep_up(self) -> None:
        """Read the fleet, write samples and their hours, for ever; told once when the database is away."""
        while True:
            try:
                await self.once()
                self._is_away = False
            except (OperationalError, InterfaceError) as error:
                if not self._is_away:
                    log.warning("the database does not answer: %s", _first_line(error))
                self._is_away = True
                await self._run(_close)
            await asyncio.sleep(_FLEET_SECONDS)

    async def once(self) -> None:
        """One round. Raises OperationalError or InterfaceError while the database is away, with nothing lost."""
        await self._alone("the fleet is not read", self._read_members)
        await self._alone(
            "the days of samples are not made", lambda: self._every(_PARTITIONS_SECONDS, samples.keep_partitions)
        )
        await self._alone("samples are not written", self._write_samples)
        await self._alone(
            "samples are not summed by the hour", lambda: self._every(_HOURS_SECONDS, hours.roll_up_since_last)
        )

    async def _alone(self, words: str, work: Callable[[], Awaitable[None]]) -> None:
        """Do `work`; what is wrong with it ends nothing else, but the database's absence does."""
        try:
            await work()
        except (OperationalError, InterfaceError):
            raise
        except Exception as error:  # the boundary of a loop: one task's defect must not end all others
            if self._is_new(words, _first_line(error)):
                log.exception("%s", words)
        else:
            self._failed.pop(words, None)

    def _is_new(self, words: str, why: str) -> bool:
        """Whether the log has to be told: not of the same reason again, until it has been well in between."""
        told, self._failed[words] = self._failed.get(words), why
        return told != why

    async def _read_members(self) -> None:
        self.members = await self._run(members)

    async def _write_samples(self) -> None:
        taken = list(self._waiting)
        self._waiting.clear()
        try:
            refused = await self._run(lambda: samples.write(taken)) if taken else []
        except (OperationalError, InterfaceError):
            self._waiting = deque([*taken, *self._waiting], _MOST_WAITING)
            raise
        if refused:
            sample, why = refused[0]
            if self._is_new("samples are set aside", why):
                log.error("%d of %d samples are set aside, the first: %s, %s", len(refused), len(taken), why, sample)
        elif taken:
            self._failed.pop("samples are set aside", None)

    async def close(self) -> None:
        await self._run(_close)
        self._thread.shutdown()

    async def _every(self, period: float, work: Callable[[], object]) -> None:
        if time.monotonic() >= self._due.get(work, 0):
            await self._run(work)
            self._due[work] = time.monotonic() + period

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def _close() -> None:
    connection.close()  # looked up here, as each thread has its own
