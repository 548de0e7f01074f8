"""The small base of every part: what the supervisor has to know to start one, watch it and stop it."""

import signal
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from headrace.stack.account import Account


class Part(ABC):
    """One server process. A part describes; `Process` runs it."""

    name: ClassVar[str]
    # Asks for an orderly end; the kernel sends the same to a part whose supervisor was killed.
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    is_waited_for: ClassVar[bool] = True  # False: it has no sign of readiness, and has done its part once started
    ready_within: ClassVar[float] = 30  # seconds from its start to its readiness
    stop_within: float = 10  # seconds from the stop signal until it is killed

    @abstractmethod
    def command(self) -> list[str]:
        """The program and its arguments; no secrets, as every user of the machine can read them."""

    @abstractmethod
    def is_ready(self, pid: int) -> bool:
        """Whether the process `pid`, not some other server on that port, serves now. Never raises, never hangs."""

    def prepare(self) -> None:
        """Make what the process needs on disk. Called before every start; may be repeated.

        Raises StackError with a text for the person at the terminal.
        """
        return

    def environment(self) -> dict[str, str]:
        """Variables added to the supervisor's own."""
        return {}

    def directory(self) -> Path | None:
        """Where the process starts; None for the supervisor's own."""
        return None

    def account(self) -> Account | None:
        """Whom the process runs as; None for the supervisor's own account."""
        return None
