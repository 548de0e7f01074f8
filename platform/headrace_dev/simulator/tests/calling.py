"""A plain client: bytes as they came, and what an SSE reader makes of them."""

import json
import socket
from typing import Any

from headrace_dev.simulator.process import ScriptedUpstream, prompt


def body(*, stream: bool = True, more: str = "", also: dict[str, Any] | None = None, **script: Any) -> dict[str, Any]:
    return {
        "model": "m",
        "stream": stream,
        "messages": [{"role": "user", "content": prompt(more, **script)}],
        **(also or {}),
    }


ASKED = {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}


class Call:
    """One request on a connection of its own."""

    def __init__(self, upstream: ScriptedUpstream, request: dict[str, Any], path: str = "/v1/chat/completions") -> None:
        self._socket = socket.create_connection(("127.0.0.1", upstream.port), timeout=5)
        data = json.dumps(request).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n"
        self._socket.sendall(head.encode() + data)
        self._file = self._socket.makefile("rb")
        self.status = 0
        self.headers: dict[str, str] = {}
        self.whole = False  # the answer came to its proper end

    def head(self) -> None:
        line = self._file.readline()
        self.status = int(line.split()[1]) if line else 0
        while line := self._file.readline().strip():
            name, _, value = line.decode().partition(": ")
            self.headers[name] = value

    def segment(self) -> bytes | None:
        """The next HTTP chunk, None at the end of the answer."""
        size = int(self._file.readline() or b"0", 16)
        data = self._file.read(size)
        self.whole = self._file.readline() == b"\r\n" and not size
        return data or None

    def segments(self) -> list[bytes]:
        """Everything up to the end, by HTTP chunk; a lost connection ends it too."""
        try:
            self.head()
            if not self.status:
                return []
            if "content-length" in self.headers:
                self.whole = True
                return [self._file.read(int(self.headers["content-length"]))]
            return list(iter(self.segment, None))
        except ConnectionResetError:
            return []

    def read(self) -> bytes:
        return b"".join(self.segments())

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def __enter__(self) -> "Call":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def fetch(upstream: ScriptedUpstream, request: dict[str, Any]) -> bytes:
    with Call(upstream, request) as call:
        return call.read()


def events(data: bytes) -> list[Any]:
    """The data of each event, decoded; "[DONE]" as itself."""
    found = []
    for block in data.decode().replace("\r\n", "\n").replace("\r", "\n").split("\n\n"):
        lines = [line.removeprefix("data:").strip() for line in block.split("\n") if line.startswith("data:")]
        if lines:
            text = "\n".join(lines)
            found.append(json.loads(text) if text.startswith("{") else text)
    return found


def said(chunks: list[Any]) -> str:
    deltas = [c["choices"][0]["delta"] for c in chunks if isinstance(c, dict) and c.get("choices")]
    return "".join(delta.get("content") or "" for delta in deltas)
