"""The load, a process of its own: clients arrive at random (Poisson), each streams one answer.

    python -m headrace_dev.bench.load < spec.json > result.json

Open loop: an arrival does not wait for earlier answers, so a slow gateway cannot slow its own load down.
"""

import asyncio
import gc
import json
import random
import sys
import time
from typing import Any

import msgspec
import uvloop

from headrace_dev.bench.client import Answer, Connection, NotServed, StreamFailed


class Spec(msgspec.Struct, kw_only=True):
    """`keys`: bearer tokens, used at random; none: no Authorization. `seed` fixes the arrivals and the keys."""

    port: int = 0
    rate: float = 1  # arrivals a second
    seconds: float
    seed: int
    events: int
    interval_ms: float
    model: str
    keys: list[str] = []
    prompt_bytes: int = 1000
    timeout: float = 300  # seconds for one stream: a server that cannot keep up is slow, not broken
    host: str = "127.0.0.1"


class Result(msgspec.Struct, kw_only=True):
    """Times are ns. `ttft`: a request's first byte sent to its first event with content. `delays`: one per event."""

    ttft: list[int] = []
    delays: list[int] = []
    late: list[int] = []  # how late each arrival itself was: a busy machine, not the gateway
    failed: list[str] = []


def request(spec: Spec, key: str | None) -> bytes:
    script = {"tokens": spec.events, "interval_ms": spec.interval_ms, "stamp": True}
    content = json.dumps({"script": script}) + " lorem" * (spec.prompt_bytes // 6)
    body: dict[str, Any] = {
        "model": spec.model,
        "messages": [{"role": "user", "content": content}],
        "max_tokens": spec.events,
        "stream": True,
    }
    data = json.dumps(body).encode()
    authorization = f"Authorization: Bearer {key}\r\n" if key else ""
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: {spec.host}:{spec.port}\r\nContent-Type: application/json\r\n"
        f"Accept: text/event-stream\r\n{authorization}Content-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


class Load:
    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._idle: list[Connection] = []
        self._requests = [request(spec, key) for key in spec.keys] or [request(spec, None)]
        self.result = Result()

    async def run(self) -> Result:
        source = random.Random(self._spec.seed)
        began = due = time.monotonic()
        clients = set()
        while (due := due + source.expovariate(self._spec.rate)) - began < self._spec.seconds:
            asked = source.choice(self._requests)
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            self.result.late.append(int((time.monotonic() - due) * 1e9))
            clients.add(asyncio.ensure_future(self._client(asked)))
        await asyncio.gather(*clients)
        for connection in self._idle:
            connection.close()
        return self.result

    async def _client(self, asked: bytes) -> None:
        began = time.monotonic_ns()
        try:
            connection, answer = await self._stream(asked)
        except (StreamFailed, OSError) as error:
            self.result.failed.append(str(error))
            return
        self.result.ttft.append(answer.arrived[0] - began)
        self.result.delays += answer.delays
        self._idle.append(connection)

    async def _stream(self, asked: bytes) -> tuple[Connection, Answer]:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                try:
                    return connection, await self._ask(connection, asked)
                except NotServed:
                    continue  # as any HTTP client does with a connection that was closed while idle
        _, connection = await asyncio.get_running_loop().create_connection(Connection, self._spec.host, self._spec.port)
        return connection, await self._ask(connection, asked)

    async def _ask(self, connection: Connection, asked: bytes) -> Answer:
        answer = Answer(self._spec.events)
        try:
            await connection.ask(asked, answer, self._spec.timeout)
        except StreamFailed:
            connection.close()
            raise
        return answer


def main() -> None:
    spec = msgspec.json.decode(sys.stdin.buffer.read(), type=Spec)
    gc.disable()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        result = runner.run(Load(spec).run())
    sys.stdout.buffer.write(msgspec.json.encode(result))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
