"""uvicorn's connection with what it lacks: an end for requests that trickle in and for clients that do not read."""

import asyncio
import re

from django.conf import settings
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from headrace.gateway.errors import ApiError
from headrace.server import send_buffer
from headrace.server.rejection import refusal
from headrace.server.uvicorn_transport import Transport

_HEAD_LIMIT = 64 * 1024
_HEAD_END = b"\r\n\r\n"
# Java's client asks for HTTP/2 with each first request. The parser would take what follows for that protocol, and the
# request's body be lost; we speak nothing else, so the wish is overlooked.
_WISH = re.compile(rb"\r\nupgrade(?=[ \t]*:)", re.IGNORECASE)
# What a body may take on the wire, of its own size: it may come in chunks, each with a size and line ends.
_WIRE_FACTOR = 2


class _Pipelined(Exception):
    """A request came before the one before it was answered."""


class Connection(HttpToolsProtocol):
    """One connection, one request at a time.

    A request has HEADRACE_BODY_SECONDS to arrive, however often a byte of it does; its head and its bytes on the wire
    are bounded. What a client does not take for HEADRACE_CLIENT_STALL_SECONDS is given up with its connection. Bytes
    that come while a request is being answered are not served: with reading paused for them, as uvicorn does, nobody
    would notice that the client leaves.
    """

    transport: Transport  # type: ignore[assignment]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(Transport(transport, self.loop))  # type: ignore[arg-type]
        send_buffer.bound(transport.get_extra_info("socket"))
        self._wire = self._unsent = 0
        self._head = b""
        self._is_reading_head = True
        self._is_deaf = False
        self._stall: asyncio.TimerHandle | None = None
        self._deadline: asyncio.TimerHandle | None = self._start_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_deadline()
        self._end_stall()
        self._unset_keepalive_if_required()
        self.transport.lost()
        super().connection_lost(exc)

    @property
    def is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    # --- requests -----------------------------------------------------------------------------------------------------
    def data_received(self, data: bytes) -> None:
        if self._is_deaf or self.transport.is_closing():
            return
        if self._is_reading_head:
            data = self._whole_head(data)
        if not data:
            return
        self._wire += len(data)
        super().data_received(data)
        if self._wire > _HEAD_LIMIT + _WIRE_FACTOR * settings.BODY_LIMIT:
            self._refuse(ApiError("body_too_large", f"The body is larger than {settings.BODY_LIMIT} bytes."))

    def _whole_head(self, data: bytes) -> bytes:
        """What came, from the beginning of its request; nothing before all of the head is there."""
        data = self._head + data if self._head else data.lstrip(b"\r\n")  # some clients end a body with an empty line
        if not data:
            return b""
        if self.is_answering:
            self._turn_deaf()
            return b""
        self._begin()
        end = data.find(_HEAD_END)
        if (len(data) if end < 0 else end) > _HEAD_LIMIT:
            self._refuse(ApiError("invalid_request", "The request's headers are too large."))
            return b""
        if end < 0:
            self._head = data
            return b""
        self._head = b""
        return _WISH.sub(b"\r\nx-upgrade", data[:end]) + data[end:]

    def _begin(self) -> None:
        """A request begins to arrive."""
        self._unset_keepalive_if_required()
        self.transport.is_arriving = True
        if self._deadline is None:
            self._deadline = self._start_deadline()

    def on_message_begin(self) -> None:
        if self.is_answering:
            raise _Pipelined
        super().on_message_begin()
        self.scope["extensions"] = {"headrace.drop": self.transport.abort}  # type: ignore[dict-item]
        self._wire = 0
        self._begin()

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._is_reading_head = False
        if self.scope["http_version"] == "1.0":
            self.transport.send_no_chunks()

    def on_message_complete(self) -> None:
        self.transport.is_arriving = False
        self._is_reading_head = True
        self._end_deadline()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """What came is not a request, or came too early: an answer under way is finished first."""
        if self.is_answering and not self.transport.is_arriving:
            self._turn_deaf()
        else:
            self._refuse(ApiError("invalid_request", "This is not an HTTP request, or its headers are too large."))

    def _turn_deaf(self) -> None:
        self._is_deaf = True
        self.cycle.keep_alive = False

    def _start_deadline(self) -> asyncio.TimerHandle:
        return self.loop.call_later(settings.BODY_SECONDS, self._is_late)

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _is_late(self) -> None:
        self._deadline = None
        if self.transport.is_arriving:
            self._refuse(ApiError("request_timeout", "The request did not arrive in time."))
        else:
            self.transport.close()  # nothing of a request came

    def _refuse(self, error: ApiError) -> None:
        """Answer what is still arriving with `error`, unless the application has answered, and take no more of it."""
        if self._is_reading_head:
            self.transport.write(refusal(error))
        elif self.is_answering:
            if not self.cycle.response_started:
                self.transport.write(refusal(error))
            self.cycle.disconnected = True  # so it looks to the application
            self.cycle.message_event.set()
        self.transport.close()

    # --- answers ------------------------------------------------------------------------------------------------------
    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_stall()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._end_stall()

    def _watch_stall(self) -> None:
        self._unsent = self.transport.unsent
        self._stall = self.loop.call_later(settings.CLIENT_STALL_SECONDS, self._stalled)

    def _stalled(self) -> None:
        if self.transport.unsent < self._unsent:
            self._watch_stall()  # slow, but it reads
        else:
            self.transport.abort()

    def _end_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
