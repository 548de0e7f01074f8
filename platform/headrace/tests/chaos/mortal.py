"""Celery's worker, killed at a random line: `python -m headrace.tests.chaos.mortal WORKER ARGUMENTS`.

After CHAOS_LINES lines of the code that settles and drains have run, in whatever thread, the process sends itself
SIGKILL: no handler runs, no transaction ends, nothing is acknowledged.
"""

import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

from celery.__main__ import main

from headrace_dev.testing.web import ROOT

# Where something is read, written or acknowledged; not the arithmetic, whose lines outnumber all these.
_FATAL = {
    str(ROOT / path)
    for path in (
        "billing/drain.py",
        "billing/ledger.py",
        "billing/partitions.py",
        "billing/settlement.py",
        "billing/tasks.py",
        "tenants/meters/holds.py",
        "tenants/meters/scripts.py",
    )
}


class Fate:
    """Counts lines; ends the process at the last."""

    def __init__(self, lines: int) -> None:
        self._left = lines

    def call(self, frame: FrameType, event: str, argument: Any) -> Any:
        is_work = frame.f_code.co_name != "<module>"  # rather than an import
        return self._line if is_work and frame.f_code.co_filename in _FATAL else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self._left -= 1
            if self._left <= 0:
                os.write(1, f"killed at {frame.f_code.co_filename}:{frame.f_lineno}\n".encode())
                os.kill(os.getpid(), signal.SIGKILL)
        return self._line


if __name__ == "__main__":
    fate = Fate(int(os.environ["CHAOS_LINES"]))
    threading.settrace(fate.call)
    sys.settrace(fate.call)
    main()
