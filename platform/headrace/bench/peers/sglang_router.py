"""SGLang's own router: Rust, no tenants, no keys, no accounting."""

from headrace.bench.peers import program
from headrace.stack.part import Part
from headrace.stack.parts.http_probe import answers
from headrace.stack.ports import LOOPBACK

PYTHON = program("sglang-router", "python")


class SglangRouter(Part):
    name = "sglang-router"
    stop_within = 2

    def __init__(self, port: int, metrics_port: int, upstream: str) -> None:
        self._port = port
        self._metrics_port = metrics_port
        self._upstream = upstream

    def command(self) -> list[str]:
        listen = ["--host", LOOPBACK, "--port", str(self._port)]
        metrics = ["--prometheus-host", LOOPBACK, "--prometheus-port", str(self._metrics_port)]
        route = ["--worker-urls", self._upstream, "--policy", "round_robin", "--log-level", "error"]
        return [str(PYTHON), "-m", "sglang_router.launch_router", *listen, *metrics, *route]

    def is_ready(self, pid: int) -> bool:
        return answers(self._port, "/readiness")
