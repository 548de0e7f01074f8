"""The folder that holds all local state, used by one `manage.py up` at a time."""

import fcntl
import json
import os
import shutil
import time
from pathlib import Path

from headrace.stack import credentials, ports
from headrace.stack.errors import StackError

NEEDED_BYTES = 200 * 2**20  # a fresh PostgreSQL takes 40 MB, its first journal files 64 MB
KEPT_LOG_BYTES = 16 * 2**20
STALE_SECONDS = 20.0


class Home:
    """Locked while open. The lock is inherited by every part, so a home is in use until the last of them has ended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.logs = path / "logs"
        self.runtime = path / "runtime.json"
        self.demo = path / "demo.json"
        self.lock = -1

    def open(self) -> None:
        """Make the folder, and take it. Raises StackError where that cannot be done."""
        try:
            self.logs.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
            self._take(descriptor)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            self._roll_logs()
            self._forget_metrics()
            free = shutil.disk_usage(self.path).free
        except OSError as error:
            raise StackError(f"the home {self.path} cannot be used: {error.strerror or error}") from error
        self.lock = descriptor
        if free < NEEDED_BYTES:
            raise StackError(
                f"the disk of {self.path} is full: {free // 2**20} MB are free, {NEEDED_BYTES // 2**20} MB are needed"
            )

    def _take(self, descriptor: int) -> None:
        deadline = time.monotonic() + STALE_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                holder = _number(os.pread(descriptor, 32, 0))
            if holder and _is_alive(holder):
                raise StackError(f"another `manage.py up` (process {holder}) runs on {self.path}")
            if time.monotonic() > deadline:
                raise StackError(f"parts of an earlier `manage.py up` on {self.path} are still running")
            time.sleep(0.1)  # it was killed, and its parts are on their way out

    def port(self, name: str) -> int:
        """A free port for the part `name`: the same as the last time where it can be."""
        file = self.path / "ports.json"
        try:
            known = dict(json.loads(file.read_text()))
        except (FileNotFoundError, ValueError):
            known = {}
        last = known.get(name)
        if isinstance(last, int) and ports.is_free(last):
            return last
        holder = ports.reserve()
        known[name] = ports.number(holder)
        holder.close()
        credentials.write_private(file, json.dumps(known))
        return int(known[name])

    def publish(self, addresses: dict[str, str]) -> None:
        """Tell every other command of this home where the parts are."""
        credentials.write_private(self.runtime, json.dumps(addresses))

    def close(self) -> None:
        """Give the home back. The parts have ended."""
        self.runtime.unlink(missing_ok=True)
        os.close(self.lock)

    def _roll_logs(self) -> None:
        for log in self.logs.glob("*.log"):
            if log.stat().st_size > KEPT_LOG_BYTES:
                log.replace(log.with_suffix(".log.1"))

    def _forget_metrics(self) -> None:
        """Of processes that are all gone: each left files of its own, which every answer of /metrics would read."""
        shutil.rmtree(self.path / "metrics", ignore_errors=True)


def _number(text: bytes) -> int:
    return int(text) if text.strip().isdigit() else 0


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
