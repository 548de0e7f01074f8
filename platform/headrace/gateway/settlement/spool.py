"""Final words that Redis could not take wait here, on disk, and are delivered once it is back.

Each line is fsynced before its request counts as settled. One file (spool_file.py) is one process's; a file whose lock
is free belongs to a process that died, and any process of the same home delivers it. Delivery may be repeated. A word
that cannot be delivered though Redis is well stops no other: its line goes to NAME.aside, and its hold to the reaper.
"""

import asyncio
import logging
import os
import re
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import msgspec
import redis
import redis.asyncio

from headrace.gateway.settlement.final_settlement import Settlement, deliver
from headrace.gateway.settlement.spool_file import SpoolFile, adopt

log = logging.getLogger("headrace.spool")

T = TypeVar("T")

DELIVER_SECONDS = 1.0
# How long a settlement waits for a disk that does not answer; then it is written whenever the disk does.
_DISK_SECONDS = 5.0

# What comes of a word that is broken itself, or whose hold is, beside errors of scripts.
_BROKEN = (msgspec.MsgspecError, ValueError, TypeError, ArithmeticError, RecursionError)
# What Redis answers for as long as it can take nothing from anybody: OOM, MISCONF, READONLY, NOREPLICAS, ...
_STATE = re.compile(r"(?!WRONGTYPE)[A-Z]{3,} ")

_encode = msgspec.json.encode
_decoder = msgspec.json.Decoder(Settlement)


class Spool:
    """The spool of a home. `pending` counts the words of this process that wait."""

    def __init__(self, directory: Path, client: "redis.asyncio.Redis") -> None:
        self._directory, self._redis = directory, client
        self._file = SpoolFile(directory / f"{os.getpid()}-{os.urandom(4).hex()}.jsonl")
        self._unwritten: list[Settlement] = []
        self._lock = asyncio.Lock()
        # A thread of its own: neither does a disk that hangs take those of others, nor have theirs to be waited for.
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="spool")
        self._appending: set[asyncio.Task[None]] = set()
        self.pending = 0

    async def append(self, word: Settlement) -> None:
        """Keep `word` until it is delivered. A disk that takes nothing leaves it in memory, and says so."""
        appending = asyncio.create_task(self._append(word))
        self._appending.add(appending)
        appending.add_done_callback(self._appending.discard)
        _, late = await asyncio.wait({appending}, timeout=_DISK_SECONDS)
        if late:
            log.error("the spool's disk does not answer, a settlement waits in memory: %s", word.request_id)

    async def _append(self, word: Settlement) -> None:
        async with self._lock:
            self.pending += 1
            try:
                await self._on_disk(lambda: self._file.append(_encode(word) + b"\n"))
            except OSError as error:
                if not self._unwritten:  # once an outage, not once a request
                    log.error("the spool cannot be written, settlements wait in memory only: %s", error)
                self._unwritten.append(word)

    async def _on_disk(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._disk, work)

    async def deliver_for_ever(self) -> None:
        """Deliver what waits, of this process and of dead ones."""
        while True:
            await asyncio.sleep(DELIVER_SECONDS)
            if await self.deliver_own():
                await _is_done(self._deliver_orphans())

    async def deliver_own(self) -> bool:
        """Deliver what waits of this process; whether nothing waits any more."""
        return await _is_done(self._deliver_own())

    async def _deliver_own(self) -> None:
        if not self.pending:
            return
        async with self._lock:
            while self._unwritten:
                if why := await self._deliver(self._unwritten[0]):
                    await self._set_aside(self._file, _encode(self._unwritten[0]), why)
                self._unwritten.pop(0)
            if self._file.is_open:
                await self._deliver_lines(self._file)
            self.pending = 0

    async def _deliver_orphans(self) -> None:
        for path in await self._on_disk(lambda: sorted(self._directory.glob("*.jsonl"))):
            if path != self._file.path:
                await _is_done(self._deliver_orphan(path))

    async def _deliver_orphan(self, path: Path) -> None:
        if (orphan := await self._on_disk(lambda: adopt(path))) is not None:
            try:
                await self._deliver_lines(orphan)
            finally:
                await self._on_disk(orphan.close)

    async def _deliver_lines(self, file: SpoolFile) -> None:
        """Deliver each line, or set it aside, then remove the file."""
        delivered = 0
        for line in await self._on_disk(file.lines):
            try:
                word = _decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                # The last line of a process that died while writing it: its hold is the reaper's.
                log.error("a broken line in %s is left to the reaper", file.path.name)
                continue
            if why := await self._deliver(word):
                await self._set_aside(file, line, why)
            else:
                delivered += 1
        await self._on_disk(file.remove)
        log.info("delivered %d settlements from the spool", delivered)

    async def _deliver(self, word: Settlement) -> str:
        """Deliver `word`; why it never can be, "" if it was. Raises RedisError where none can be at the moment."""
        try:
            await deliver(self._redis, word)
        except redis.ResponseError as error:
            if type(error) is not redis.ResponseError or _STATE.match(str(error)):
                raise
            return str(error)
        except _BROKEN as error:
            return f"{type(error).__name__}: {error}"
        return ""

    async def _set_aside(self, file: SpoolFile, line: bytes, why: str) -> None:
        aside = await self._on_disk(lambda: file.set_aside(line))
        request_id = msgspec.json.decode(line, type=_Name).request_id
        log.error("the settlement of %s cannot be delivered and is set aside in %s: %s", request_id, aside.name, why)


class _Name(msgspec.Struct):
    request_id: str


async def _is_done(delivery: Awaitable[None]) -> bool:
    """Whether it could be done now: Redis or the disk may be away, or no descriptor be left."""
    try:
        await delivery
    except (redis.RedisError, OSError) as error:
        log.debug("the spool waits: %s", type(error).__name__)
        return False
    return True
