"""The clients of one run over HTTP, a process of their own: each request of a trace when it is due, one stream each.

    python -m headrace_dev.bench.routing.replay < spec.json > result.json

Open loop, on the simulation's clock: `scale` real seconds are one of the trace's. The simulated fleet is reset at the
start, so that its clock and this one begin together.
"""

import asyncio
import gc
import re
import sys
import time
import urllib.request
from pathlib import Path

import msgspec
import uvloop

from headrace_dev.bench.client import DONE, LAST_CHUNK, OK, Connection, NotServed, Reply, StreamFailed
from headrace_dev.bench.routing.prepared import OWN, SHARED
from headrace_dev.bench.routing.served import Served
from headrace_dev.bench.traces import Asked, at_load, generate, load

CONTENT, ROLE = b'"content":"', b'"content":""'
USAGE = re.compile(rb'"(prompt_tokens|completion_tokens|cached_tokens)":\s*(\d+)')
LAST = 400  # bytes of the end kept: more than a usage chunk and the end of the stream


class Spec(msgspec.Struct, kw_only=True):
    """`keys`: one for each tenant, or none. `fleet`: a replica's URL, to reset the simulation at."""

    trace: str  # its file
    seed: int
    load: float = 1.0
    scale: float
    port: int
    keys: list[str] = []
    fleet: str
    timeout: float = 300  # real seconds for one stream


class Result(msgspec.Struct, kw_only=True):
    """`late`: how late each request was sent, in real seconds: a busy machine, not the gateway."""

    served: list[Served] = []
    late: list[float] = []


class Told(Reply):
    """A stream's first and last token, and the usage at its end. One event with content is one token."""

    def __init__(self) -> None:
        super().__init__()
        self.first = self.last = 0.0
        self.tokens = 0
        self.usage: dict[str, int] = {}
        self._head = b""
        self._carry = b""
        self._end = b""
        self._begun = False

    @property
    def events(self) -> int:
        return self.tokens

    def take(self, data: bytes) -> None:
        now = time.monotonic()
        if not self._begun:
            self._head += data
            if len(self._head) < len(OK):
                return
            if not self._head.startswith(OK):
                self.fail(self._head[:500].decode("latin-1"))
                return
            self._begun = True
            data = self._head
        data = self._carry + data
        whole = data.rfind(b"\n\n") + 2 if b"\n\n" in data else 0
        self._carry = data[whole:]
        content = data.count(CONTENT, 0, whole) - data.count(ROLE, 0, whole)
        if content:
            self.first = self.first or now
            self.last = now
            self.tokens += content
        self._end = (self._end + data[:whole])[-LAST:]
        if self._carry.endswith(LAST_CHUNK) or data.endswith(LAST_CHUNK):
            self._over()

    def _over(self) -> None:
        if DONE not in self._end:
            self.fail(f"the stream ended without [DONE]: {self._end[-300:].decode('latin-1')}")
        elif not self.tokens:
            self.fail(f"no tokens: {self._end[-300:].decode('latin-1')}")
        else:
            self.usage = {name.decode(): int(value) for name, value in USAGE.findall(self._end)}
            self.finish()


class Replay:
    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._trace = generate(at_load(load(Path(spec.trace)), spec.load), spec.seed)
        self._idle: list[Connection] = []
        self.result = Result()

    async def run(self) -> Result:
        reset = urllib.request.Request(f"{self._spec.fleet}/control/reset", data=b"", method="POST")
        await asyncio.to_thread(lambda: urllib.request.urlopen(reset, timeout=30).close())
        began, clients = time.monotonic(), []
        for asked in self._trace.requests:
            due = began + asked.at * self._spec.scale
            data = self.request(asked)
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            self.result.late.append(time.monotonic() - due)
            clients.append(asyncio.ensure_future(self._client(asked, data)))
        await asyncio.gather(*clients)
        for connection in self._idle:
            connection.close()
        return self.result

    def request(self, asked: Asked) -> bytes:
        data = msgspec.json.encode(
            {
                "model": SHARED if asked.is_shared else OWN,
                "messages": asked.messages,
                "max_tokens": self._trace.shape.max_tokens,
                "stream": True,
                "stream_options": {"include_usage": True},
            }
        )
        key = f"Authorization: Bearer {self._spec.keys[asked.tenant]}\r\n" if self._spec.keys else ""
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{self._spec.port}\r\n"
            f"Content-Type: application/json\r\n{key}Content-Length: {len(data)}\r\n\r\n"
        )
        return head.encode() + data

    async def _client(self, asked: Asked, data: bytes) -> None:
        began, served = time.monotonic(), Served(asked.number, asked.kind, asked.at)
        self.result.served.append(served)
        try:
            told = await self._stream(data)
        except (StreamFailed, OSError) as error:
            served.failed = str(error) or type(error).__name__
            return
        served.prompt = told.usage.get("prompt_tokens", 0)
        served.cached = told.usage.get("cached_tokens", 0)
        served.ttft = (told.first - began) / self._spec.scale
        served.tpot = (told.last - told.first) / max(1, told.tokens - 1) / self._spec.scale

    async def _stream(self, data: bytes) -> Told:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                try:
                    return await self._ask(connection, data)
                except NotServed:
                    continue  # as any HTTP client does with a connection that was closed while idle
        _, connection = await asyncio.get_running_loop().create_connection(Connection, "127.0.0.1", self._spec.port)
        return await self._ask(connection, data)

    async def _ask(self, connection: Connection, data: bytes) -> Told:
        told = Told()
        try:
            await connection.ask(data, told, self._spec.timeout)
        except StreamFailed:
            connection.close()
            raise
        self._idle.append(connection)
        return told


def main() -> None:
    spec = msgspec.json.decode(sys.stdin.buffer.read(), type=Spec)
    replay = Replay(spec)
    gc.freeze()
    gc.disable()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        result = runner.run(replay.run())
    sys.stdout.buffer.write(msgspec.json.encode(result))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
