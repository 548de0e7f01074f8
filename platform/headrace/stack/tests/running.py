"""A `manage.py up` of its own for a test: in its own home, on its own port, with none of the session's servers."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings

from headrace.stack import ports

# What tells a part's process from the others of the same supervisor.
_MARKS = {
    "postgres": "bin/postgres",
    "valkey": "valkey-server",
    "engine": "engines.launch.llamacpp",
    "web": "headrace.server",
    "worker": "headrace\0worker",
    "collector": "manage.py\0collect",
    "beat": "headrace\0beat",
}


class Up:
    """`output` is all it has printed so far."""

    def __init__(
        self, home: Path, *, engine: str = "none", port: int | None = None, environment: dict[str, str] | None = None
    ) -> None:
        self.home = home
        self.port = port or free_port()
        arguments = ["up", "--home", str(home), "--port", str(self.port), "--engine", engine]
        self._output, name = tempfile.mkstemp()
        os.unlink(name)
        self.process = subprocess.Popen(
            [sys.executable, str(settings.ROOT / "manage.py"), *arguments],
            stdout=self._output,
            stderr=self._output,
            env=clean_environment() | (environment or {}),
        )

    @property
    def output(self) -> str:
        return os.pread(self._output, 2**20, 0).decode()

    @property
    def demo(self) -> dict[str, Any]:
        return dict(json.loads((self.home / "demo.json").read_text()))

    def wait_ready(self) -> "Up":
        wait_until(lambda: "Headrace runs." in self.output or self.process.poll() is not None, 60)
        assert "Headrace runs." in self.output, self.output
        return self

    def wait_ended(self, seconds: float = 30) -> int:
        return self.process.wait(seconds)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.wait_ended()

    def pid(self, part: str) -> int | None:
        for pid in children(self.process.pid):
            if _MARKS[part] in command_line(pid):
                return pid
        return None

    def pids(self) -> list[int]:
        return [pid for part in _MARKS if (pid := self.pid(part))]

    def replacement(self, part: str, old: int) -> int:
        """The pid of the process that runs as `part` instead of `old`."""
        wait_until(lambda: self.pid(part) not in {None, old}, 20)
        return self.pid(part) or 0


def clean_environment() -> dict[str, str]:
    ours = ("HEADRACE_", "DATABASE_", "REDIS_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def free_port() -> int:
    with ports.reserve() as holder:
        return ports.number(holder)


def children(parent: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        if int(fields[1]) == parent and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def is_alive(pid: int) -> bool:
    return bool(command_line(pid))


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
