"""Runs one part: start, ready, stop. A process started here never outlives the process that started it."""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from headrace.stack.errors import PartFailed, StackError
from headrace.stack.part import Part

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def end_with_parent(stop_signal: int) -> Callable[[], None]:
    """A preexec function: the kernel sends `stop_signal` to the new process when the *thread* that started it ends.

    So parts are started from the main thread only.
    """
    parent = os.getpid()

    def before_exec() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, stop_signal, 0, 0, 0)
        if os.getppid() != parent:  # it died before the call above could matter
            os._exit(1)

    return before_exec


def end_with_make() -> None:
    """Where `make` started this process, end it when make is killed: nobody would be left to press Ctrl-C."""
    if os.environ.get("MAKELEVEL"):
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


class Process:
    """The process of one part, its log in `logs/<name>.log`. Descriptors in `keep` stay open in it."""

    def __init__(self, part: Part, logs: Path, *, keep: tuple[int, ...] = ()) -> None:
        self.part = part
        self.log = logs / f"{part.name}.log"
        self.keep = keep
        self.started_at = 0.0
        self._stop_by: float | None = None
        self._popen: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        if self._popen is None:
            raise StackError(f"{self.part.name} was not started")
        return self._popen.pid

    @property
    def is_running(self) -> bool:
        return self._popen is not None and self._popen.poll() is None

    @property
    def status(self) -> int | None:
        """The exit status, negative for a signal; None while it runs or before it was started."""
        return self._popen.poll() if self._popen else None

    @property
    def ended_how(self) -> str:
        """Why it is not running, in words."""
        status = self.status
        if status is None:
            return "is running" if self._popen else "was not started"
        if status < 0:
            return f"was ended by {signal.Signals(-status).name}"
        return f"ended with status {status}"

    def start(self) -> None:
        """Prepare the part and start its process, in its own session: Ctrl-C reaches the supervisor only.

        Raises StackError.
        """
        try:
            self.part.prepare()
            self.log.parent.mkdir(parents=True, exist_ok=True)
            with self.log.open("ab") as log:
                self._popen = self._spawn(log.fileno())
        except (OSError, subprocess.SubprocessError) as error:
            raise PartFailed(f"{self.part.name} could not be started: {_in_words(error)}") from error
        self.started_at = time.monotonic()
        self._stop_by = None

    def _spawn(self, log: int) -> "subprocess.Popen[bytes]":
        account = self.part.account()
        return subprocess.Popen(
            self.part.command(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **self.part.environment()},
            cwd=self.part.directory(),
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
            start_new_session=True,
            pass_fds=self.keep,
            preexec_fn=end_with_parent(self.part.stop_signal),
        )

    def is_ready(self) -> bool:
        return self.is_running and self.part.is_ready(self.pid)

    def wait_ready(self) -> None:
        """Return once the part serves. Raises PartFailed, with the end of its log, when it ended or took too long."""
        deadline = self.started_at + self.part.ready_within
        while not self.is_ready():
            if not self.is_running:
                raise PartFailed(f"{self.part.name} {self.ended_how}.\n{self.last_words()}")
            if time.monotonic() > deadline:
                raise PartFailed(
                    f"{self.part.name} was not ready after {self.part.ready_within:g} s.\n{self.last_words()}"
                )
            time.sleep(0.02)

    def last_words(self, lines: int = 12) -> str:
        """The end of the part's log, indented, under the file's name."""
        try:
            text = self.log.read_text(errors="replace")[-8000:]
        except OSError:
            text = ""
        return "\n".join([f"  {self.log}:", *(f"  | {line}" for line in text.splitlines()[-lines:])])

    def ask_to_stop(self) -> None:
        """Send the part's stop signal. Does nothing to a process that has ended."""
        if self._popen is not None:
            self._popen.send_signal(self.part.stop_signal)
            self._stop_by = time.monotonic() + self.part.stop_within

    def has_stopped(self, hurry: bool = False) -> bool:
        """Whether it has ended since `ask_to_stop`; kills it when its time is over, or at once in a `hurry`."""
        if self.is_running and not hurry and self._stop_by is not None and time.monotonic() < self._stop_by:
            return False
        self.kill()
        return True

    def stop(self) -> None:
        """Ask it to stop, and wait until it has."""
        self.ask_to_stop()
        while not self.has_stopped():
            time.sleep(0.02)

    def kill(self) -> None:
        """SIGKILL the process and whatever it started, and wait for it."""
        if self._popen is not None:
            self._popen.kill()
            self._kill_group()
            self._popen.wait()

    def _kill_group(self) -> None:
        """End children that outlived the process: they are in its session's first process group."""
        with suppress(ProcessLookupError):  # nothing is left of it
            os.killpg(self.pid, signal.SIGKILL)


def _in_words(error: Exception) -> str:
    """The system's own words with the file, without its number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror} ({error.filename})" if error.filename else error.strerror
    return str(error)
