"""Final words that Redis could not take wait here, on disk, and are delivered once it is back.

One file per process, each line fsynced before the request counts as settled. A process locks its own file; a file whose
lock is free belongs to a process that died, and any process of the same home delivers it. Delivery may be repeated.
"""

import asyncio
import fcntl
import logging
import os
from pathlib import Path

import msgspec
import redis
import redis.asyncio

from headrace.api.final_word import FinalWord, deliver

log = logging.getLogger("headrace.spool")

DELIVER_SECONDS = 1.0

_encode = msgspec.json.encode
_decoder = msgspec.json.Decoder(FinalWord)


class Spool:
    """The spool of a home. `pending` counts the lines of this process that wait."""

    def __init__(self, directory: Path, client: "redis.asyncio.Redis") -> None:
        self._directory, self._redis = directory, client
        self._path = directory / f"{os.getpid()}-{os.urandom(4).hex()}.jsonl"
        self._descriptor: int | None = None
        self._unwritten: list[FinalWord] = []
        self._lock = asyncio.Lock()
        self.pending = 0

    async def append(self, word: FinalWord) -> None:
        """Keep `word` until it is delivered. A disk that takes nothing leaves it in memory, and says so."""
        async with self._lock:
            self.pending += 1
            try:
                await asyncio.to_thread(self._write, _encode(word) + b"\n")
            except OSError as error:
                log.error("the spool cannot be written (%s): kept in memory only: %s", error, word.request_id)
                self._unwritten.append(word)

    def _write(self, line: bytes) -> None:
        if self._descriptor is None:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        os.write(self._descriptor, line)
        os.fsync(self._descriptor)

    async def deliver(self) -> None:
        """Deliver what waits, of this process and of dead ones; for ever."""
        while True:
            await asyncio.sleep(DELIVER_SECONDS)
            try:
                await self._deliver_own()
                await self._deliver_orphans()
            except (redis.RedisError, OSError) as error:
                log.debug("the spool waits: %s", type(error).__name__)

    async def _deliver_own(self) -> None:
        if self._descriptor is None and not self._unwritten:
            return
        async with self._lock:
            while self._unwritten:
                await deliver(self._redis, self._unwritten[0])
                self._unwritten.pop(0)
            if self._descriptor is not None:
                await self._deliver_file(self._path)
                os.close(self._descriptor)
                self._descriptor = None
            self.pending = 0

    async def _deliver_orphans(self) -> None:
        if not self._directory.is_dir():
            return
        for path in sorted(self._directory.glob("*.jsonl")):
            if path == self._path:
                continue
            descriptor = os.open(path, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                await self._deliver_file(path)
            except BlockingIOError:
                continue  # its process lives
            finally:
                os.close(descriptor)

    async def _deliver_file(self, path: Path) -> None:
        """Deliver each line, then remove the file."""
        delivered = 0
        lines = await asyncio.to_thread(path.read_bytes)
        for line in lines.splitlines():
            try:
                word = _decoder.decode(line)
            except msgspec.DecodeError:
                # The last line of a process that died while writing it: its hold is the reaper's.
                log.error("a broken line in %s is left to the reaper", path.name)
                continue
            await deliver(self._redis, word)
            delivered += 1
        os.unlink(path)
        log.info("delivered %d settlements from the spool", delivered)
