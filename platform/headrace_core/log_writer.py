"""Writing the log without ever waiting for whoever reads it.

A pipe whose reader stalls takes 64 KiB and then blocks its writer: were that the event loop, nothing would be answered
any more. So each descriptor has a bounded queue and a thread that writes. Lines that find the queue full are dropped
and counted (`dropped`, `on_drop`), and the log says how many once it is read again. A stop waits for what is queued
FLUSH_SECONDS at most.
"""

import atexit
import io
import logging
import os
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable

MOST_BYTES = 4 * 2**20  # of each descriptor
FLUSH_SECONDS = 2.0
_WRITE_BYTES = 64 * 1024
STDOUT, STDERR = 1, 2
_NAMES = {STDOUT: "stdout", STDERR: "stderr"}


class LogWriter:
    """The queue and the thread of one descriptor. `put` may be called by any thread, and never blocks on the reader."""

    def __init__(self, descriptor: int, name: str) -> None:
        self.descriptor, self.name = descriptor, name
        self.dropped = 0
        self.on_drop: Callable[[str], None] | None = None  # called with the descriptor's name, for each line dropped
        self.forget()

    def forget(self) -> None:
        """Begin anew with an empty queue, as a process must that was forked: what is queued is its parent's."""
        self._queue: deque[bytes] = deque()
        self._size = 0  # bytes queued or being written
        self._untold = 0  # dropped, and not yet said in the log
        self._is_stalled = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def put(self, text: bytes, *, is_forced: bool = False) -> None:
        """Queue `text`, whole lines; where the queue is full, drop and count it. is_forced: queue it all the same."""
        with self._changed:
            is_kept = is_forced or self._size + len(text) <= MOST_BYTES
            if is_kept:
                self._queue.append(text)
                self._size += len(text)
                self._begin()
                self._changed.notify_all()
        if not is_kept:
            self._count_dropped(1)

    def flush(self, seconds: float = FLUSH_SECONDS) -> bool:
        """Wait until all that is queued is written, for so many seconds at most; whether it is.

        Nothing is waited for a second time where the first was in vain.
        """
        with self._changed:
            is_flushed = self._changed.wait_for(lambda: not self._size, 0 if self._is_stalled else seconds)
            self._is_stalled = not is_flushed
            return is_flushed

    def _begin(self) -> None:
        if self._thread is None:
            # A daemon: one that hangs in a write must not keep the process from ending.
            self._thread = threading.Thread(target=self._write_for_ever, name="log writer", daemon=True)
            self._thread.start()

    def _write_for_ever(self) -> None:
        while True:
            pieces, size = self._take()
            is_written = _write(self.descriptor, b"".join(pieces))
            with self._changed:
                self._size -= size
                untold = self._untold if is_written and self._size <= MOST_BYTES // 2 else 0
                self._untold -= untold
                self._changed.notify_all()
            if not is_written:
                self._count_dropped(len(pieces))
            elif untold:
                _say_dropped(self.name, untold)

    def _take(self) -> tuple[list[bytes], int]:
        """The next pieces, and their bytes; waits for one."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue)
            pieces, size = [], 0
            while self._queue and size < _WRITE_BYTES:
                pieces.append(self._queue.popleft())
                size += len(pieces[-1])
            return pieces, size

    def _count_dropped(self, lines: int) -> None:
        with self._changed:
            self.dropped += lines
            self._untold += lines
        if self.on_drop is not None:
            for _ in range(lines):
                self.on_drop(self.name)


def _write(descriptor: int, text: bytes) -> bool:
    """Write all of `text`, however long it takes; whether the descriptor took it."""
    rest = memoryview(text)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:  # somebody else made the pipe non-blocking
            select.select([], [descriptor], [], 1.0)
        except OSError:  # nobody reads any more, or the disk is full
            return False
    return True


def _say_dropped(stream: str, lines: int) -> None:
    at = time.strftime("%Y-%m-%d %H:%M:%S")
    line = f"{at},000 WARNING headrace.log {lines} lines for {stream} were dropped: nobody read what was there\n"
    WRITERS[STDERR].put(line.encode(), is_forced=True)


def _is_shared() -> bool:
    """Whether stdout and stderr lead to the same place: one writer then keeps their lines apart."""
    try:
        return os.path.samestat(os.fstat(STDOUT), os.fstat(STDERR))
    except OSError:  # one of them is closed
        return False


_stdout = LogWriter(STDOUT, _NAMES[STDOUT])
WRITERS = {STDOUT: _stdout, STDERR: _stdout if _is_shared() else LogWriter(STDERR, _NAMES[STDERR])}


class QueuedHandler(logging.Handler):
    """A handler of `logging` that queues its lines for `descriptor`."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._writer = WRITERS[descriptor]

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._writer.put(self.format(record).encode("utf-8", "backslashreplace") + b"\n")
        except (TypeError, ValueError, LookupError, AttributeError):  # its arguments do not fit its text
            self.handleError(record)

    def flush(self) -> None:
        """Called by `logging` when the process ends."""
        self._writer.flush()


class QueuedStream(io.TextIOBase):
    """In place of sys.stdout or sys.stderr: what libraries print, and Python itself of errors that nobody caught."""

    encoding = "utf-8"

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        WRITERS[self._descriptor].put(text.encode("utf-8", "backslashreplace"))
        return len(text)

    def fileno(self) -> int:
        return self._descriptor


def queue_standard_streams() -> None:
    """Have all that this process prints go through the queues: for processes with an event loop."""
    sys.stdout, sys.stderr = QueuedStream(STDOUT), QueuedStream(STDERR)
    atexit.register(flush_all)


def divert_descriptors() -> None:
    """Have all that is written to stdout and stderr, by whatever means, go through queues: for programs that are not
    ours (Celery writes to the descriptors themselves, also while it is told to stop). Children may inherit them."""
    kept = LogWriter(os.dup(STDOUT), _NAMES[STDOUT])
    others = kept if _is_shared() else LogWriter(os.dup(STDERR), _NAMES[STDERR])
    for diversion in (_Diversion(STDOUT, kept), _Diversion(STDERR, others)):
        atexit.register(diversion.end)


class _Diversion:
    """A pipe in place of `descriptor`, read at once into the queue of `kept`, which is where the descriptor led."""

    def __init__(self, descriptor: int, kept: LogWriter) -> None:
        self._kept = kept
        self._pipe, entrance = os.pipe()
        os.dup2(entrance, descriptor)
        os.close(entrance)
        threading.Thread(target=self._read_for_ever, name="log reader", daemon=True).start()

    def _read_for_ever(self) -> None:
        while text := os.read(self._pipe, _WRITE_BYTES):
            self._kept.put(text)

    def end(self) -> None:
        """Wait, within FLUSH_SECONDS, until what was written is on its way out."""
        flush_all()
        until = time.monotonic() + FLUSH_SECONDS
        while select.select([self._pipe], [], [], 0)[0] and time.monotonic() < until:
            time.sleep(0.005)
        self._kept.flush()


def flush_all() -> None:
    for writer in WRITERS.values():
        writer.flush()


def _forget_all() -> None:
    for writer in WRITERS.values():
        writer.forget()


os.register_at_fork(after_in_child=_forget_all)
