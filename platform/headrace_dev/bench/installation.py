"""A throw-away Headrace: its own Postgres and Valkey, migrated, with a document applied through the real verb."""

import json
import os
import subprocess
import sys
from typing import Any

from django.conf import settings

from headrace_dev.bench.benchmark import BenchmarkFailed
from headrace_dev.testing.stores import Services


class Installation:
    """`environment` is what its processes run with. No worker runs: usage stays in Valkey's stream."""

    def __init__(self, document: dict[str, Any], *, durable: bool = False) -> None:
        self._document = document
        self._services = Services(durable=durable)
        self.environment = self._services.environment() | {"HEADRACE_LOG_LEVEL": "WARNING"}

    def start(self) -> None:
        """Raises BenchmarkFailed with what the command that failed said."""
        self._services.start()
        self._services.wait_ready()
        self.manage("migrate", "--verbosity", "0")
        self.apply(self._document)

    def apply(self, document: dict[str, Any]) -> None:
        """Raises BenchmarkFailed."""
        path = self._services.home / "document.yaml"
        path.write_text(json.dumps(document))
        self.manage("apply", str(path))

    @property
    def database_url(self) -> str:
        return self._services.database_url

    @property
    def redis_url(self) -> str:
        return self._services.redis_url

    @property
    def valkey_pid(self) -> int:
        return self._services.valkey.pid

    def stop(self) -> None:
        self._services.stop()

    def manage(self, *arguments: str) -> str:
        """Run `manage.py` on this Headrace; what it prints. Raises BenchmarkFailed with what it said instead."""
        return self.run("manage.py", *arguments)

    def run(self, *arguments: str) -> str:
        """Run Python on this Headrace, as `manage`."""
        done = self._run(arguments, stderr=subprocess.PIPE)
        if done.returncode:
            raise BenchmarkFailed(f"{' '.join(arguments[:3])}: {done.stderr.strip()[-2000:]}")
        return done.stdout

    def tell(self, *arguments: str) -> Any:
        """As `run`, for what takes long: its progress and complaints are seen as they come. The object it prints."""
        done = self._run(arguments, stderr=None)
        if done.returncode:
            raise BenchmarkFailed(f"{' '.join(arguments[:3])} failed: what it said is above")
        return json.loads(done.stdout)

    def _run(self, arguments: tuple[str, ...], *, stderr: int | None) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, *arguments],
            env={**os.environ, **self.environment},
            cwd=settings.ROOT,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            check=False,
        )
