"""The client side of one streamed chat request, cheap enough not to be what is measured: a bare asyncio protocol.

Events carry the moment the upstream sent them (the scripted upstream's `stamp`), on the clock that every process of a
machine shares, so an event's delay needs no second measurement.
"""

import asyncio
import re
import time
from abc import ABC, abstractmethod
from typing import cast

STAMP = re.compile(rb'"(\d+)@(\d+) "')
LAST_CHUNK = b"0\r\n\r\n"
OK = b"HTTP/1.1 200 "
DONE = b"data: [DONE]"
CARRY = 96  # bytes: the longest start of a stamp, or of the end, that a read may cut


class StreamFailed(Exception):
    """The answer was not the stream expected; the message says what came."""


class ConnectionLost(StreamFailed):
    """The connection ended before the stream did."""


class NotServed(ConnectionLost):
    """It ended before the first event: on a reused connection, the server's idle timeout may have come first."""


class Connection(asyncio.Protocol):
    """One keep-alive connection, one request at a time."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self._answer: Reply | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but its base class

    def data_received(self, data: bytes) -> None:
        if self._answer is not None:
            self._answer.take(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self._answer is not None:
            lost = self._answer.events
            self._answer.fail(f"the connection was lost after {lost} events", ConnectionLost if lost else NotServed)

    @property
    def is_open(self) -> bool:
        return self.transport is not None and not self.transport.is_closing()

    async def ask(self, request: bytes, answer: "Reply", seconds: float) -> None:
        """Send `request`, return when `answer` has taken the whole stream. Raises StreamFailed."""
        if self.transport is None:
            raise StreamFailed("not connected")
        self._answer = answer
        self.transport.write(request)
        try:
            await asyncio.wait_for(answer.over, seconds)
        except TimeoutError:
            raise StreamFailed(f"not over after {seconds:g} s") from None
        finally:
            self._answer = None

    def close(self) -> None:
        if self.transport is not None:
            self.transport.abort()


class Reply(ABC):
    """One answer while it comes. `over` is done when it has come whole, or has failed."""

    def __init__(self) -> None:
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    @abstractmethod
    def events(self) -> int:
        """How many came so far."""

    @abstractmethod
    def take(self, data: bytes) -> None:
        """What the connection received: a piece of an HTTP response."""

    def finish(self) -> None:
        if not self.over.done():
            self.over.set_result(None)

    def fail(self, why: str, kind: type[StreamFailed] = StreamFailed) -> None:
        if not self.over.done():
            self.over.set_exception(kind(why))


class Answer(Reply):
    """What came: for each event its arrival and its delay since the upstream sent it, in ns."""

    def __init__(self, expected: int) -> None:
        super().__init__()
        self.arrived: list[int] = []
        self.delays: list[int] = []
        self._expected = expected
        self._carry = b""
        self._begun = False
        self._done = False

    @property
    def events(self) -> int:
        return len(self.arrived)

    def take(self, data: bytes) -> None:
        now = time.monotonic_ns()
        data = self._carry + data
        if not self._begun:
            if len(data) < len(OK):
                self._carry = data
                return
            if not data.startswith(OK):
                self.fail(data[:500].decode("latin-1"))
                return
            self._begun = True
        end = 0
        for stamp in STAMP.finditer(data):
            if int(stamp[1]) != len(self.arrived):
                self.fail(f"event {stamp[1].decode()} came as number {len(self.arrived)}")
                return
            self.arrived.append(now)
            self.delays.append(now - int(stamp[2]))
            end = stamp.end()
        self._done = self._done or DONE in data
        if self._done and data.endswith(LAST_CHUNK):
            if len(self.arrived) == self._expected:
                self.finish()
            else:
                self.fail(f"{len(self.arrived)} events instead of {self._expected}")
            return
        self._carry = data[max(end, len(data) - CARRY) :]
