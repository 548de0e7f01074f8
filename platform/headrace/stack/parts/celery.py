"""The worker, which settles, rolls up and cleans up, and beat, which says when.

Neither forks: the kernel ends a killed supervisor's own children only, so a part's children could outlive everything.
Nobody waits for these two: what they do may be late.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from headrace.stack.part import Part

_CELERY = [sys.executable, "-m", "celery", "-A", "headrace"]


class Worker(Part):
    name = "worker"
    is_waited_for = False

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def command(self) -> list[str]:
        alone = ["--without-gossip", "--without-mingle", "--without-heartbeat"]  # there is no other worker to talk to
        return [*_CELERY, "worker", "--pool", "threads", "--concurrency", "4", "--loglevel", "INFO", *alone]

    def environment(self) -> dict[str, str]:
        return dict(self._environment)

    def is_ready(self, pid: int) -> bool:
        return True


class Beat(Part):
    name = "beat"
    is_waited_for = False

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self.home = directory
        self._environment = environment

    def prepare(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)

    def command(self) -> list[str]:
        # Without a pid file: one that a killed beat left behind would keep the next from starting.
        return [*_CELERY, "beat", "--schedule", str(self.home / "schedule"), "--pidfile=", "--loglevel", "WARNING"]

    def environment(self) -> dict[str, str]:
        return dict(self._environment)

    def is_ready(self, pid: int) -> bool:
        return True
