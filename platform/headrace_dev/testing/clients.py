"""A raw HTTP client that sends what it is told, when it is told, and leaves at a chosen moment."""

import asyncio
import json
import secrets
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit

from headrace_dev.testing.world import World

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: on, 0 s
CHAT = "/v1/chat/completions"


@dataclass
class Head:
    """The status line and headers of an answer."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)


class Caller:
    """One connection, one request. `leave` ends it as a client does: with a FIN, or a reset."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._length = 0

    @classmethod
    async def to(cls, url: str, *, window: int | None = None) -> Self:
        """Connect. window: bytes the kernel may keep for this client, so that one that stops reading is felt soon."""
        parts = urlsplit(url)
        connection = socket.socket()
        if window is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        connection.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(connection, (parts.hostname, parts.port))
        except OSError:
            connection.close()
            raise
        reader, writer = await asyncio.open_connection(sock=connection)
        return cls(reader, writer)

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def ask(self, world: World, *, secret: str | None = None, name: str = "", **fields: Any) -> Self:
        """Send a whole chat request. name: the client's own request id, which becomes a label of the record."""
        await self.send(request(world, secret=secret, name=name, **fields))
        return self

    async def head(self) -> Head:
        """The answer's status and headers."""
        status = int((await self._line()).split()[1])
        head = Head(status)
        while line := (await self._line()).strip():
            name, _, value = line.decode().partition(":")
            head.headers[name.lower()] = value.strip()
        self._length = int(head.headers.get("content-length", 0))
        return head

    async def event(self) -> str:
        """The data of the next event of a stream; chunk sizes and blank lines are passed over."""
        while True:
            line = await self._line()
            if line.startswith(b"data: "):
                return line[6:].strip().decode()

    async def body(self) -> bytes:
        """The body of an answer whose head was read; its connection serves the next request."""
        if self._length:
            return await self.reader.readexactly(self._length)
        body = b""
        while size := int(await self._line(), 16):
            body += (await self.reader.readexactly(size + 2))[:-2]
        await self._line()
        return body

    async def error(self) -> str:
        """The code of a refusal, whose head was read: its body's, or that of the next error event."""
        body = await self.reader.readexactly(self._length) if self._length else b""
        while not body.startswith(b'{"error":'):
            body = (await self._line()).removeprefix(b"data: ")
        return str(json.loads(body)["error"]["code"])

    async def rest(self) -> bytes:
        """All that comes until the server closes the connection."""
        return await self.reader.read(-1)

    async def wait_closed(self) -> None:
        """Wait until the server has ended the connection, with a FIN or a reset."""
        try:
            while await self.reader.read(2**16):
                continue
        except ConnectionError:
            return

    def stop_reading(self) -> None:
        self.writer.transport.pause_reading()  # type: ignore[attr-defined]

    async def leave(self, *, reset: bool = False) -> None:
        """Close the connection; when this returns, the kernel has been told."""
        connection = self.writer.get_extra_info("socket")
        if reset and not self.writer.is_closing():
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.writer.transport.abort()
        with suppress(ConnectionError):
            await self.writer.wait_closed()

    async def _line(self) -> bytes:
        line = await self.reader.readline()
        if not line:
            raise ConnectionResetError("the server closed the connection")
        return line


def request(world: World, *, secret: str | None = None, name: str = "", **fields: Any) -> bytes:
    """A whole chat request as bytes."""
    body = json.dumps(world.body(**fields)).encode()
    return head(world, secret=secret, name=name, length=len(body)) + body


def head(world: World, *, secret: str | None = None, name: str = "", length: int | None, path: str = CHAT) -> bytes:
    """The head of a POST; length None: its body comes in chunks."""
    framing = "transfer-encoding: chunked" if length is None else f"content-length: {length}"
    authorization = world.headers(secret)["authorization"]
    return (
        f"POST {path} HTTP/1.1\r\nhost: headrace\r\nauthorization: {authorization}\r\n"
        f"content-type: application/json\r\nx-request-id: {name}\r\n{framing}\r\n\r\n"
    ).encode()


@dataclass
class Stream:
    """A stream read to its end in the background. `events` have come, and in them `tokens` of the script; `end` is
    DONE, an error's code or "cut"."""

    name: str
    caller: Caller
    events: int = 0
    tokens: int = 0
    end: str = ""
    following: "asyncio.Task[None] | None" = None

    async def follow(self) -> None:
        try:
            if (answer := await self.caller.head()).status != 200:
                self.end = await self.caller.error()
            while answer.status == 200 and not self.end:
                data = await self.caller.event()
                if data == "[DONE]":
                    self.end = "DONE"
                elif data.startswith('{"error":'):
                    self.end = str(json.loads(data)["error"]["code"])
                else:
                    self.events += 1
                    self.tokens += data.count('"content":"tok')
        except ConnectionError:
            self.end = "cut"
        finally:
            await self.caller.leave()

    async def ended(self) -> str:
        assert self.following is not None
        await self.following
        return self.end


async def streams(url: str, world: World, number: int, *, secret: str | None = None, **fields: Any) -> list[Stream]:
    """So many streams, each past its first event."""
    opened = []
    for _ in range(number):
        name = secrets.token_hex(6)
        caller = await (await Caller.to(url)).ask(world, secret=secret, name=name, stream=True, **fields)
        opened.append(Stream(name, caller))
        opened[-1].following = asyncio.create_task(opened[-1].follow())
    async with asyncio.timeout(20):
        while not all(stream.events or stream.end for stream in opened):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert {stream.end for stream in opened} <= {"", "DONE"}, opened
    return opened
