"""The one-off before the web starts: migrate, then the demo. It runs apart, as the supervisor has no database yet."""

import sys
from collections.abc import Mapping

from headrace.stack.part import Part


class Setup(Part):
    name = "setup"
    ready_within = 120

    def __init__(self, engine: str, engine_url: str, environment: Mapping[str, str]) -> None:
        self._arguments = ["--engine", engine, "--engine-url", engine_url]
        self._environment = environment

    def command(self) -> list[str]:
        return [sys.executable, "-m", "headrace.stack.setup", *self._arguments]

    def environment(self) -> dict[str, str]:
        return dict(self._environment)

    def is_ready(self, pid: int) -> bool:
        return False  # it is done when it has ended
