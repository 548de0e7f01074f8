"""How long a web process answers nothing: /healthz asked again and again on one connection.

Beside each answer's time stands the CPU time that the process used meanwhile: what the machine did for others is in the
one and not in the other.
"""

import socket
import statistics
import threading
import time
from types import TracebackType

from headrace_dev.bench.cpu import own_seconds

_PAUSE = 0.001
_ASK = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


class Probe:
    """While it is entered, it asks. `worst_ms`: the longest that one answer took, beyond what one takes at rest.
    `cpu_ms`: the most CPU time that the process used while one answer was waited for: the work of its longest callback,
    and of those that came with it.
    """

    def __init__(self, port: int, pid: int) -> None:
        self._pid = pid
        self._connection = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._is_over = threading.Event()
        self._times: list[tuple[float, float]] = []
        rest = [self._ask() for _ in range(100)]
        self._rest = statistics.median(took for took, _ in rest)
        self._rest_cpu = statistics.median(cpu for _, cpu in rest)

    def __enter__(self) -> "Probe":
        self._times, self._is_over = [], threading.Event()
        self._thread = threading.Thread(target=self._ask_on)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()

    @property
    def worst_ms(self) -> float:
        return max(0.0, max(took for took, _ in self._times) - self._rest) * 1000

    @property
    def cpu_ms(self) -> float:
        return max(0.0, max(cpu for _, cpu in self._times) - self._rest_cpu) * 1000

    def close(self) -> None:
        self._connection.close()

    def _ask_on(self) -> None:
        while not self._is_over.is_set():
            self._times.append(self._ask())
            time.sleep(_PAUSE)

    def _ask(self) -> tuple[float, float]:
        """Seconds until the answer, and CPU seconds of the process meanwhile."""
        used, began = own_seconds(self._pid), time.perf_counter()
        self._connection.sendall(_ASK)
        answer = b""
        while b'{"status":"ok"}' not in answer:
            answer += self._connection.recv(65536)
        took = time.perf_counter() - began
        return took, own_seconds(self._pid) - used
