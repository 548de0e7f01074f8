"""What is measured: a server between the clients and the upstream, started afresh for each run."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from headrace.stack import ports
from headrace.stack.part import Part
from headrace.stack.parts.web import Web
from headrace.stack.process import Process
from headrace_dev.bench import cpu
from headrace_dev.bench.installation import Installation


class Contestant(ABC):
    """`label` and `tenants` name it in the report. `start` returns the port to load, once it serves."""

    def __init__(self, label: str, *, tenants: int | None = None, keys: list[str] | None = None) -> None:
        self.label = label
        self.tenants = tenants
        self.keys = keys or []

    def __str__(self) -> str:
        return self.label if self.tenants is None else f"{self.label}, {self.tenants} tenants,"

    @abstractmethod
    def start(self) -> int: ...

    @abstractmethod
    def stop(self) -> None: ...

    def cpu_seconds(self) -> float:
        """CPU used so far by the server, all its processes and threads."""
        return 0.0

    def redis_seconds(self) -> float:
        return 0.0


class Direct(Contestant):
    """No server between: what the machine, the upstream and the clients cost by themselves."""

    def __init__(self, port: int) -> None:
        super().__init__("direct")
        self._port = port

    def start(self) -> int:
        return self._port

    def stop(self) -> None:
        return


class Server(Contestant):
    """A part of its own process, on a free port. `part` makes it anew for each run."""

    def __init__(
        self,
        label: str,
        part: Callable[[int], Part],
        logs: Path,
        *,
        tenants: int | None = None,
        keys: list[str] | None = None,
    ) -> None:
        super().__init__(label, tenants=tenants, keys=keys)
        self._part = part
        self._logs = logs
        self._process: Process | None = None

    @property
    def process(self) -> Process:
        if self._process is None:
            raise RuntimeError(f"{self.label} is not running")
        return self._process

    def start(self) -> int:
        with ports.reserve() as holder:
            port = ports.number(holder)
            self._process = Process(self._part(port), self._logs)
            self._process.start()
            self._process.wait_ready()
        return port

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()
            self._process = None

    def cpu_seconds(self) -> float:
        return cpu.seconds(self.process.pid)


class Headrace(Server):
    def __init__(self, server: str, installation: Installation, logs: Path, *, tenants: int, keys: list[str]) -> None:
        super().__init__(
            f"headrace-{server}",
            lambda port: Web(port, server, installation.environment, drain_seconds=5),
            logs,
            tenants=tenants,
            keys=keys,
        )
        self._installation = installation

    def redis_seconds(self) -> float:
        return cpu.seconds(self._installation.valkey_pid)
