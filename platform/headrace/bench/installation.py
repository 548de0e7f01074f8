"""A throw-away Headrace: its own Postgres and Valkey, migrated, with a document applied through the real verb."""

import json
import os
import subprocess
import sys
from typing import Any

from django.conf import settings

from headrace.bench.benchmark import BenchmarkFailed
from headrace.testing.stores import Services


class Installation:
    """`environment` is what its processes run with. No worker runs: usage stays in Valkey's stream."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self._services = Services()
        self.environment = self._services.environment() | {"HEADRACE_LOG_LEVEL": "WARNING"}

    def start(self) -> None:
        """Raises BenchmarkFailed with what the command that failed said."""
        self._services.start()
        self._services.wait_ready()
        self._manage("migrate", "--verbosity", "0")
        path = self._services.home / "document.yaml"
        path.write_text(json.dumps(self._document))
        self._manage("apply", str(path))

    @property
    def valkey_pid(self) -> int:
        return self._services.valkey.pid

    def stop(self) -> None:
        self._services.stop()

    def _manage(self, *arguments: str) -> None:
        done = subprocess.run(
            [sys.executable, str(settings.ROOT / "manage.py"), *arguments],
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BenchmarkFailed(f"manage.py {arguments[0]}: {done.stderr.strip()[-2000:]}")
