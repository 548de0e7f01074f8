"""From events to the segments that reach the transport, each written on its own."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from headrace_dev.simulator.script import Script

Message = dict[str, Any]
Send = Callable[[Message], Awaitable[None]]
Receive = Callable[[], Awaitable[Message]]

BODY = "http.response.body"


def sizes(script: Script) -> Iterator[int] | None:
    """The segment sizes a script asks for; None when events are written as they are."""
    if isinstance(script.split, int):
        return _random_sizes(script.split, script.split_max)
    if script.split is not None:
        return iter(script.split)
    if script.split_every:
        return iter(lambda: script.split_every, None)
    return None


def _random_sizes(seed: int, largest: int) -> Iterator[int]:
    source = random.Random(seed)
    while True:
        yield source.randint(1, largest)


class Writer:
    """Writes one answer. A segment's bytes are held back until it is complete; once the script's sizes are used up,
    events are written as they come. `flush` and `finish` write what is held."""

    def __init__(self, send: Send, script: Script) -> None:
        self._send = send
        self._sizes = sizes(script)
        self._size = next(self._sizes, None) if self._sizes is not None else None
        self._pause = script.split_ms / 1000
        self._eol = script.eol.encode()
        self._held = bytearray()
        self.started = False

    async def start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Send the head, once."""
        if not self.started:
            self.started = True
            await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def event(self, data: bytes) -> None:
        """Write text whose line ends are \\n, in the script's line ends."""
        await self.write(data if self._eol == b"\n" else data.replace(b"\n", self._eol))

    async def write(self, data: bytes) -> None:
        if self._size is None:
            await self._send({"type": BODY, "body": data, "more_body": True})
            return
        self._held += data
        while self._size is not None and len(self._held) >= self._size:
            segment = bytes(self._held[: self._size])
            del self._held[: self._size]
            await self.segment(segment)
            self._size = next(self._sizes, None) if self._sizes is not None else None
        if self._size is None:
            await self.flush()

    async def segment(self, data: bytes) -> None:
        """Write exactly these bytes now, then let the loop (and the receiver) have a turn."""
        await self._send({"type": BODY, "body": data, "more_body": True})
        await asyncio.sleep(self._pause)

    async def flush(self) -> None:
        if self._held:
            await self._send({"type": BODY, "body": bytes(self._held), "more_body": True})
            self._held.clear()

    async def finish(self) -> None:
        await self._send({"type": BODY, "body": bytes(self._held), "more_body": False})

    async def whole(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        """A complete answer of known length, cut as the script says."""
        await self.start(status, [*headers, (b"content-length", b"%d" % len(body))])
        await self.write(body)
        await self.finish()
