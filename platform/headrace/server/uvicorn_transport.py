"""The transport under a uvicorn connection, ended gently where that matters and surely where it does not."""

import asyncio
from collections.abc import Callable

from django.conf import settings

from headrace.server.rejection import LINGER_SECONDS


class Transport:
    """Passes on to the real transport. `is_arriving`, kept by the connection: its request has not come whole yet.

    Closed meanwhile, it sends what it has and goes on taking bytes for a moment: the kernel would otherwise reset the
    connection, and the client never see its answer.
    """

    write: Callable[[bytes], None]

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._end: asyncio.TimerHandle | None = None
        self.is_arriving = False
        self.write, self.abort = transport.write, transport.abort
        self.pause_reading, self.resume_reading = transport.pause_reading, transport.resume_reading
        self.get_extra_info = transport.get_extra_info

    def send_no_chunks(self) -> None:
        """The client speaks HTTP/1.0 and knows no chunks, which uvicorn sends all the same: what is written next is
        the head of its only answer, whose body, in chunks one a write, goes out without them and ends with the
        connection."""
        self.write = self._write_head

    def _write_head(self, data: bytes) -> None:
        head = data.replace(b"\r\ntransfer-encoding: chunked\r\n", b"\r\n", 1)
        self.write = self._transport.write if head == data else self._write_unchunked
        self._transport.write(head)

    def _write_unchunked(self, data: bytes) -> None:
        if data:
            size, _, rest = data.partition(b"\r\n")
            self._transport.write(rest[: int(size, 16)])

    @property
    def unsent(self) -> int:
        """Bytes that the kernel has not taken yet."""
        return self._transport.get_write_buffer_size()

    def is_closing(self) -> bool:
        return self._end is not None or self._transport.is_closing()

    def close(self) -> None:
        if self.is_closing():
            return
        if self.is_arriving:
            self._end = self._loop.call_later(LINGER_SECONDS, self.abort)
            self._transport.resume_reading()
            self._transport.write_eof()
            return
        if self.unsent:  # without it, a client that never reads the rest keeps the descriptor
            self._end = self._loop.call_later(settings.CLIENT_STALL_SECONDS, self.abort)
        self._transport.close()

    def lost(self) -> None:
        """The connection is gone: no timer may outlive it."""
        if self._end is not None:
            self._end.cancel()
