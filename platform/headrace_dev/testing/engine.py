"""The real engines for tests: llama.cpp from a wheel, and SGLang on this CPU or wherever SGLANG_URL points."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx

from engines.launch import sglang_cpu
from headrace.stack import ports
from headrace.stack.process import end_with_parent

ROOT = Path(__file__).resolve().parents[3]
SGLANG_ENVIRONMENT = ROOT / ".venv-sglang"
# Small enough to be filled by a test, so that a full queue can be seen.
SGLANG_FLAGS = ["--max-running-requests=8", "--max-queued-requests=4"]


class Engine:
    """A real engine. `kind` is its protocol's name, `model` the name it serves."""

    def __init__(self, kind: str, url: str, process: "subprocess.Popen[bytes] | None" = None) -> None:
        self.kind, self.url, self.model = kind, url, "smollm2"
        self._process = process

    def running(self) -> int:
        """How many requests it works on now, by its own account."""
        if self.kind == "llamacpp":
            slots = httpx.get(f"{self.url}/slots", timeout=10, trust_env=False).json()
            return sum(bool(slot["is_processing"]) for slot in slots)
        text = httpx.get(f"{self.url}/metrics", timeout=10, trust_env=False).text
        # With priorities on, the series without one is the total.
        totals = re.findall(r'^sglang:num_running_reqs\{[^}]*priority=""[^}]*\} ([0-9.]+)', text, re.MULTILINE)
        return round(sum(map(float, totals)))

    def idle_within(self, seconds: float) -> float:
        """Wait until nothing runs; how long that took. Raises AssertionError after `seconds`."""
        began = time.monotonic()
        while left := self.running():
            assert time.monotonic() - began < seconds, f"{left} still run after {seconds} s"
            time.sleep(0.02)
        return time.monotonic() - began

    def wait_ready(self, log: Path, seconds: float) -> "Engine":
        deadline = time.monotonic() + seconds
        path = "health" if self.kind == "llamacpp" else "v1/models"
        while time.monotonic() < deadline and (self._process is None or self._process.poll() is None):
            try:
                if httpx.get(f"{self.url}/{path}", timeout=5, trust_env=False).status_code == 200:
                    return self
            except httpx.TransportError:
                time.sleep(0.1)
        raise AssertionError(f"{self.kind} is not ready:\n{log.read_text()[-3000:] if log.exists() else ''}")

    def stop(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)  # SGLang has children; all are in its own session
            self._process.wait()


def start_llamacpp(log: Path) -> Engine:
    return _start("llamacpp", [sys.executable, "-m", "engines.launch.llamacpp"], log, [], 60)


def start_sglang(log: Path) -> Engine:
    """SGLang: the server at SGLANG_URL if there is one, else one of our own (`make sglang` has to have run)."""
    if url := os.environ.get("SGLANG_URL"):
        return Engine("sglang", url.rstrip("/")).wait_ready(log, 30)
    sglang_cpu.check(SGLANG_ENVIRONMENT)
    return _start("sglang", sglang_cpu.command(SGLANG_ENVIRONMENT), log, SGLANG_FLAGS, 300)


def _start(kind: str, command: list[str], log: Path, flags: list[str], seconds: float) -> Engine:
    holder = ports.reserve()
    port = ports.number(holder)
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--port", str(port), *flags],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=end_with_parent(signal.SIGKILL),
        )
    engine = Engine(kind, f"http://127.0.0.1:{port}", process)
    try:
        return engine.wait_ready(log, seconds)
    except AssertionError:
        engine.stop()
        raise
    finally:
        holder.close()
