"""Keeps the parts running: restarts one that ended, gives up on one that will not stay, and stops all in order.

One thread, one loop, no locks: `poll` looks at every part and never waits.
"""

import time
from collections.abc import Callable
from pathlib import Path

from headrace.stack.errors import PartFailed
from headrace.stack.part import Part
from headrace.stack.process import Process

# Delays before each restart of a part within WINDOW seconds; the end after the last. Long enough together for
# PostgreSQL to be rid of a killed server's shared memory.
BACKOFF = (0.1, 0.5, 1, 2, 4, 8, 8)
WINDOW = 120.0


class Watched:
    """A process and its history."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.is_ready = False
        self.was_ready = False
        self.ends: list[float] = []  # when it ended unasked, within WINDOW
        self.restart_at: float | None = None

    @property
    def name(self) -> str:
        return self.process.part.name


class Supervisor:
    """The running parts, in the order they were started. `say` prints one line for the person at the terminal."""

    def __init__(self, logs: Path, say: Callable[[str], None], *, keep: tuple[int, ...] = ()) -> None:
        self._logs = logs
        self._say = say
        self._keep = keep
        self._watched: list[Watched] = []

    def start(self, part: Part) -> None:
        """Start `part` and watch it from now on. Raises StackError where it cannot even begin."""
        watched = Watched(Process(part, self._logs, keep=self._keep))
        self._watched.append(watched)
        watched.process.start()

    def run_once(self, part: Part, go_on: Callable[[], None]) -> None:
        """Run `part` to its end; the others are watched meanwhile, and `go_on` may raise to stop waiting."""
        process = Process(part, self._logs, keep=self._keep)
        process.start()
        try:
            while process.is_running:
                if time.monotonic() - process.started_at > part.ready_within:
                    raise PartFailed(f"{part.name} took over {part.ready_within:g} s.\n{process.last_words()}")
                go_on()
                self.poll()
                time.sleep(0.02)
        finally:
            process.kill()
        if process.status != 0:
            raise PartFailed(f"{part.name} {process.ended_how}.\n{process.last_words()}")

    def wait_ready(self, names: set[str], go_on: Callable[[], None]) -> None:
        """Watch until the named parts are ready; `go_on` may raise to stop waiting. Raises PartFailed."""
        while not all(watched.is_ready for watched in self._watched if watched.name in names):
            go_on()
            self.poll()
            time.sleep(0.02)

    def poll(self) -> None:
        """Look at every part once; restart what has ended. Raises PartFailed when one has ended too often."""
        for watched in self._watched:
            if watched.restart_at is not None:
                if time.monotonic() >= watched.restart_at:
                    self._restart(watched)
            elif not watched.process.is_running:
                self._plan_restart(watched, watched.process.ended_how)
            elif not watched.is_ready:
                self._check_ready(watched)

    def _restart(self, watched: Watched) -> None:
        watched.restart_at = None
        try:
            watched.process.start()
        except PartFailed as error:  # a full disk, say, which somebody may be about to clear
            self._plan_restart(watched, str(error).removeprefix(watched.name).strip())

    def _check_ready(self, watched: Watched) -> None:
        process = watched.process
        took = time.monotonic() - process.started_at
        if process.is_ready():
            watched.is_ready = watched.was_ready = True
            how = f"ready after {took:.1f} s" if process.part.is_waited_for else "started"
            self._say(f"{watched.name:<9} {how}")
        elif took > process.part.ready_within:
            how = f"was not ready after {process.part.ready_within:g} s"
            if not watched.was_ready:
                raise PartFailed(f"{watched.name} {how}.\n{process.last_words()}")
            self._plan_restart(watched, how)

    def _plan_restart(self, watched: Watched, how: str) -> None:
        now = time.monotonic()
        watched.process.kill()  # its children, if it left any
        watched.is_ready = False
        watched.ends = [end for end in watched.ends if now - end < WINDOW] + [now]
        if len(watched.ends) > len(BACKOFF):
            raise PartFailed(
                f"{watched.name} {how}, and has ended {len(watched.ends)} times in {WINDOW:g} s.\n"
                f"{watched.process.last_words()}"
            )
        delay = BACKOFF[len(watched.ends) - 1]
        watched.restart_at = now + delay
        self._say(f"{watched.name:<9} {how}; starting it again in {delay:g} s (log: {watched.process.log})")

    def stop(self, order: tuple[set[str], ...], hurry: Callable[[], bool]) -> None:
        """Stop every part, one set of names after the other; at once, by SIGKILL, when `hurry` turns true."""
        for names in order:
            ending = [watched.process for watched in reversed(self._watched) if watched.name in names]
            for process in ending:
                process.ask_to_stop()
            for process in ending:
                while not process.has_stopped(hurry()):
                    time.sleep(0.02)
        self._watched.clear()
