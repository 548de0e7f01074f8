"""The clock of a machine, set by a test: processes on it take it to be that time, and may be told another."""

import mmap
import os
import struct
import time
from datetime import UTC, datetime
from pathlib import Path

from headrace_dev.testing.web import ROOT

# Python imports it as it starts, before anything of ours. Pauses and timeouts go by the monotonic clock, as they were.
_SITE = """
import mmap, struct, time
real = time.time
with open({path!r}, "rb") as file:
    shift = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)
time.time = lambda: real() + struct.unpack("d", shift)[0]
"""


class Clock:
    """It goes as the real one does, `set` apart. `environment` is for a WebProcess that is to run on it."""

    def __init__(self, folder: Path) -> None:
        path = folder / "shift"
        path.write_bytes(struct.pack("d", 0.0))
        with path.open("r+b") as file:
            self._shift = mmap.mmap(file.fileno(), 8)
        (folder / "sitecustomize.py").write_text(_SITE.format(path=str(path)))
        self.environment = {"PYTHONPATH": os.pathsep.join(map(str, (folder, ROOT, ROOT / "platform")))}

    def set(self, moment: datetime) -> None:
        self._shift[:8] = struct.pack("d", moment.timestamp() - time.time())

    def now(self) -> datetime:
        (shift,) = struct.unpack("d", self._shift)
        return datetime.fromtimestamp(time.time() + shift, UTC)
