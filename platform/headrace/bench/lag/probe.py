"""How long a web process answers nothing: /healthz asked again and again on one connection."""

import socket
import statistics
import threading
import time
from types import TracebackType

_PAUSE = 0.001
_ASK = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


class Probe:
    """While it is entered, it asks. `worst_ms`: the longest that one answer took, beyond what one takes at rest."""

    def __init__(self, port: int) -> None:
        self._connection = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._is_over = threading.Event()
        self._times: list[float] = []
        self._rest = statistics.median(self._ask() for _ in range(100))

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
        return max(0.0, max(self._times) - self._rest) * 1000

    def close(self) -> None:
        self._connection.close()

    def _ask_on(self) -> None:
        while not self._is_over.is_set():
            self._times.append(self._ask())
            time.sleep(_PAUSE)

    def _ask(self) -> float:
        began = time.perf_counter()
        self._connection.sendall(_ASK)
        answer = b""
        while b'{"status":"ok"}' not in answer:
            answer += self._connection.recv(65536)
        return time.perf_counter() - began
