"""A simulated fleet as a process of its own, for tests and benchmarks.

with FleetProcess(profile, replicas=8, scale=2) as fleet:
    ... requests to fleet.urls ...
    hits = [one["hit_tokens"] for one in fleet.stats()["replicas"]]
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from headrace_dev.simulator.ending import end
from headrace_dev.simulator.fleet.profile import Profile

ROOT = Path(__file__).resolve().parents[4]


class FleetProcess:
    """Listens from construction on. It ends with `stop()`, or by itself when the one that started it is gone."""

    def __init__(self, profile: Profile, *, replicas: int, scale: float = 1.0, model: str = "simulated") -> None:
        self.pid = 0
        with ExitStack() as stack:
            listeners = [
                stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=8192)) for _ in range(replicas)
            ]
            told = stack.enter_context(tempfile.NamedTemporaryFile(suffix=".json"))
            told.write(msgspec.json.encode(profile))
            told.flush()
            descriptors = [one.fileno() for one in listeners]
            self.urls = [f"http://127.0.0.1:{one.getsockname()[1]}" for one in listeners]
            command = [sys.executable, "-m", "headrace_dev.simulator.fleet.serve", "--until-stdin-closes"]
            command += [f"--profile={told.name}", f"--scale={scale}", f"--model={model}"]
            command += [f"--fds={','.join(map(str, descriptors))}"]
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                stdin=subprocess.PIPE,
                pass_fds=descriptors,
                env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "platform")])},
            )
            self.pid = self._process.pid
            try:
                self.stats()  # answered once it has read its profile
            except BaseException:
                self.stop()
                raise

    def stop(self) -> None:
        """End the process; harmless when repeated."""
        end(self._process)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stats(self) -> dict[str, Any]:
        """See state.Fleet.stats."""
        with urllib.request.urlopen(f"{self.urls[0]}/control/stats", timeout=30) as answer:
            found: dict[str, Any] = json.loads(answer.read())
        return found

    def reset(self) -> None:
        """End what runs; empty caches, counters and samples, and set the clock to 0."""
        request = urllib.request.Request(f"{self.urls[0]}/control/reset", data=b"", method="POST")
        urllib.request.urlopen(request, timeout=30).close()
