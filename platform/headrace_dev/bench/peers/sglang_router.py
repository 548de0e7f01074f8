"""SGLang's own router: Rust, no tenants, no keys, no accounting."""

import json
import urllib.request
from collections.abc import Sequence

from headrace.stack.part import Part
from headrace.stack.parts.http_probe import answers
from headrace.stack.ports import LOOPBACK
from headrace_dev.bench.peers import program

PYTHON = program("sglang-router", "python")


class SglangRouter(Part):
    name = "sglang-router"
    stop_within = 2

    def __init__(
        self, port: int, metrics_port: int, upstreams: Sequence[str], flags: Sequence[str] = ("--policy", "round_robin")
    ) -> None:
        self._port = port
        self._metrics_port = metrics_port
        self._upstreams = upstreams
        self._flags = flags

    def command(self) -> list[str]:
        listen = ["--host", LOOPBACK, "--port", str(self._port)]
        metrics = ["--prometheus-host", LOOPBACK, "--prometheus-port", str(self._metrics_port)]
        route = ["--worker-urls", *self._upstreams, *self._flags, "--log-level", "error"]
        return [str(PYTHON), "-m", "sglang_router.launch_router", *listen, *metrics, *route]

    def is_ready(self, pid: int) -> bool:
        """Serves, and has found all its upstreams healthy."""
        return answers(self._port, "/readiness") and self._healthy() == len(self._upstreams)

    def _healthy(self) -> int:
        try:
            with urllib.request.urlopen(f"http://{LOOPBACK}:{self._port}/workers", timeout=2) as answer:
                workers = json.loads(answer.read())["workers"]
        except (OSError, ValueError, KeyError):
            return 0
        return sum(worker["is_healthy"] for worker in workers)
