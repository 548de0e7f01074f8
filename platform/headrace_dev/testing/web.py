"""A web process of its own for tests: started, asked, stopped or killed by pid."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx

from headrace.stack import ports
from headrace.stack.process import end_with_parent

ROOT = Path(__file__).resolve().parents[3]


# A test that empties all tables may meet a process that reads several: the process, which tries again, gives way.
GIVES_WAY = "-c deadlock_timeout=100ms"


class WebProcess:
    """`python -m headrace.server` on a port of its own. Settings come from the test session's environment.

    `environment` overrides them. Its output goes to `log`; `records()` are its request log's lines.
    """

    def __init__(self, log: Path, server: str = "uvicorn", **environment: str) -> None:
        self.log = log
        self._holder = ports.reserve()  # until it listens, so that nobody else is given the port
        self.port = ports.number(self._holder)
        self.url = f"http://127.0.0.1:{self.port}"
        source = os.pathsep.join([str(ROOT), str(ROOT / "platform")])
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "headrace.server", "--server", server, "--port", str(self.port)],
                env={**os.environ, "PYTHONPATH": source, "PGOPTIONS": GIVES_WAY, **environment},
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                preexec_fn=end_with_parent(signal.SIGKILL),
            )
        self.pid = self._process.pid

    def wait_ready(self, seconds: float = 60) -> "WebProcess":
        """Return once it serves; raises AssertionError with its log if it does not."""
        deadline = time.monotonic() + seconds
        # One client: making one for each question would cost more than the process that is to start.
        with httpx.Client(timeout=1, trust_env=False) as client:
            while time.monotonic() < deadline and self._process.poll() is None:
                if _answers(client, f"{self.url}/readyz"):
                    self._holder.close()
                    return self
                time.sleep(0.05)
        raise AssertionError(f"the web process is not ready:\n{self.log.read_text()[-4000:]}")

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._holder.close()

    def stop(self, seconds: float = 20) -> int:
        """Ask it to stop, and wait; its exit status."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
        self._holder.close()
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def records(self) -> list[dict[str, Any]]:
        """The usage records it logged, one JSON line a request."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith('{"v":')]


def _answers(client: httpx.Client, url: str) -> bool:
    try:
        return client.get(url).status_code == 200
    except httpx.TransportError:
        return False
