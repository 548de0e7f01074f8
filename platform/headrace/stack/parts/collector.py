"""The collector, which asks every replica for its load; the web routes without it, only less well."""

import sys
from collections.abc import Mapping
from pathlib import Path

from headrace.stack.part import Part


class Collector(Part):
    name = "collector"
    is_waited_for = False

    def __init__(self, root: Path, environment: Mapping[str, str]) -> None:
        self._root = root
        self._environment = environment

    def command(self) -> list[str]:
        return [sys.executable, str(self._root / "manage.py"), "collect"]

    def environment(self) -> dict[str, str]:
        return dict(self._environment)

    def is_ready(self, pid: int) -> bool:
        return True
