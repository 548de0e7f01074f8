"""The scripted upstream as a process of its own, for tests and benchmarks.

    with ScriptedUpstream(tokens=20, interval_ms=5) as upstream:
        body = {"messages": [{"role": "user", "content": prompt(drop_after=7)}], "stream": True}
        ...
        assert upstream.stats()["open"] == 0

Scripts and controls are described in script.py, control.py and seen.py.
"""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from headrace_dev.simulator.ending import end

ROOT = Path(__file__).resolve().parents[3]


def prompt(more: str = "", /, **script: Any) -> str:
    """A user message that carries its own script, and `more` text to lengthen the prompt."""
    return json.dumps({"script": script}, ensure_ascii=False) + more


class ScriptedUpstream:
    """Listens from construction on: a connection made before the process is ready waits for it.

    `model`, `tokens`, `interval_ms` and `first_ms` are the defaults of scripts that do not say. The process ends with
    `stop()`, or by itself when the one that started it is gone. port: that of one that is gone, to follow it.
    """

    def __init__(
        self,
        *,
        model: str = "scripted",
        tokens: int = 100,
        interval_ms: float = 0,
        first_ms: float = 0,
        context: int = 1_000_000,
        kept: int = 1000,
        port: int = 0,
    ) -> None:
        with socket.create_server(("127.0.0.1", port), backlog=8192) as listener:
            self.port = int(listener.getsockname()[1])
            descriptor = listener.fileno()
            options = {
                "fd": descriptor,
                "model": model,
                "tokens": tokens,
                "interval-ms": interval_ms,
                "first-ms": first_ms,
                "context": context,
                "kept": kept,
            }
            command = [sys.executable, "-m", "headrace_dev.simulator.scripted", "--until-stdin-closes"]
            command += [f"--{name}={value}" for name, value in options.items()]
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                stdin=subprocess.PIPE,
                pass_fds=[descriptor],
                env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "platform")])},
            )
        self.url = f"http://127.0.0.1:{self.port}"
        self.pid = self._process.pid

    def stop(self) -> None:
        """End the process; harmless when repeated."""
        end(self._process)

    def kill(self) -> None:
        """End it as a machine that loses power does: its connections are reset."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # --- the controls
    def stats(self) -> dict[str, Any]:
        answer: dict[str, Any] = self._call("GET", "stats")
        return answer

    def requests(self, path: str | None = "/v1/chat/completions") -> list[dict[str, Any]]:
        """The last `kept` requests seen, oldest first; of one path unless None."""
        seen: list[dict[str, Any]] = self._call("GET", "requests")
        return [one for one in seen if path in {None, one["path"]}]

    def script(self, **fields: Any) -> None:
        """What requests without a script of their own get from now on."""
        self._call("POST", "script", fields)

    def scripts(self, *scripts: dict[str, Any]) -> None:
        """One script for each of the coming requests without their own; then the default again."""
        self._call("POST", "script", list(scripts))

    def health(self, *, status: int = 200, delay_ms: float = 0) -> None:
        self._call("POST", "health", {"status": status, "delay_ms": delay_ms})

    def loads(self, **fields: Any) -> None:
        """Fields laid over what /v1/loads and /metrics answer."""
        self._call("POST", "loads", fields)

    def about(self, **fields: Any) -> None:
        """Fields of what /model_info says of the model."""
        self._call("POST", "about", fields)

    def reset(self) -> None:
        """Drop what runs; forget scripts, counters and the prefix cache."""
        self._call("POST", "reset")

    def wait_until_idle(self, seconds: float = 5) -> float:
        """Wait until no request is open; returns how long that took. Raises AssertionError after `seconds`."""
        began = time.monotonic()
        while open_now := self.stats()["open"]:
            if time.monotonic() - began > seconds:
                raise AssertionError(f"{open_now} requests are still open after {seconds} s")
            time.sleep(0.01)
        return time.monotonic() - began

    def _call(self, method: str, name: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/control/{name}", data=data, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())
