"""The web process: the data plane and the screens, on one port of the loopback address."""

import sys
from collections.abc import Mapping

from headrace.stack.part import Part
from headrace.stack.parts.http_probe import answers

SERVERS = ("uvicorn", "daphne")  # the first is the default: it takes a third less CPU a stream


class Web(Part):
    """It finishes its streams before it stops, for `drain_seconds` at most."""

    name = "web"

    def __init__(self, port: int, server: str, environment: Mapping[str, str], *, drain_seconds: float) -> None:
        self.port = port
        self.server = server
        self.stop_within = drain_seconds + 15  # what it then interrupts is settled, and its clients are told
        self._environment = environment

    def command(self) -> list[str]:
        return [sys.executable, "-m", "headrace.server", "--server", self.server, "--port", str(self.port)]

    def environment(self) -> dict[str, str]:
        return dict(self._environment)

    def is_ready(self, pid: int) -> bool:
        return answers(self.port, "/readyz")
