"""The engine that answers the demo's requests: llama.cpp in this environment, or SGLang in one of its own."""

import signal
import sys
from pathlib import Path

from engines.launch import llamacpp, sglang_cpu
from headrace.stack.errors import NotInstalled
from headrace.stack.part import Part
from headrace.stack.parts.http_probe import answers
from headrace.stack.ports import LOOPBACK


class Engine(Part):
    """A server that listens on `port` of the loopback address."""

    name = "engine"
    # It stops after the web, with nothing to finish or to save, and SGLang is slow to obey anything else.
    stop_signal = signal.SIGKILL

    def __init__(self, port: int) -> None:
        self.port = port

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    def is_ready(self, pid: int) -> bool:
        return answers(self.port, "/health", timeout=10)


class LlamaCpp(Engine):
    def prepare(self) -> None:
        try:
            llamacpp.check()
        except llamacpp.CannotRun as error:
            raise NotInstalled(str(error)) from error

    def command(self) -> list[str]:
        return [sys.executable, "-m", "engines.launch.llamacpp", "--port", str(self.port)]


class SGLang(Engine):
    """The real scheduler, radix cache and HTTP server; about a minute to start: three processes import torch."""

    ready_within = 300

    def __init__(self, port: int, environment: Path, *flags: str) -> None:
        """flags: SGLang's own, over those of the recipe."""
        super().__init__(port)
        self._environment, self._flags = environment, flags

    def prepare(self) -> None:
        try:
            sglang_cpu.check(self._environment)
        except sglang_cpu.CannotRun as error:
            raise NotInstalled(str(error)) from error

    def command(self) -> list[str]:
        return [*sglang_cpu.command(self._environment), "--port", str(self.port), *self._flags]

    def environment(self) -> dict[str, str]:
        return {"PYTHONPATH": str(sglang_cpu.ROOT)}  # its environment knows nothing of ours
