"""Daphne's connection with what Twisted's lacks: an end for requests that trickle in and clients that do not read."""

import socket
from typing import Any

from django.conf import settings
from twisted.protocols import basic
from twisted.web import http

from headrace.gateway.errors import ApiError
from headrace.server import send_buffer
from headrace.server.rejection import KEEP_ALIVE_SECONDS, LINGER_SECONDS, refusal

# Twisted's types are half there: it is taken as untyped.
_HTTPChannel: Any = http.HTTPChannel
_LineReceiver: Any = basic.LineReceiver


class BoundedChannel(_HTTPChannel):  # type: ignore[misc]
    """One connection.

    A request has HEADRACE_BODY_SECONDS to arrive, however often a byte of it does. What a client does not take for
    HEADRACE_CLIENT_STALL_SECONDS is given up with its connection. Bytes that come while a request is being answered are
    not served: Twisted stops reading when there are many, and then nobody would notice that the client leaves.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_refused = False
        self._is_arriving = False
        self._stall: Any = None
        self._unsent = 0

    # --- requests -----------------------------------------------------------------------------------------------------
    def connectionMade(self) -> None:
        super().connectionMade()
        send_buffer.bound(self.transport.getHandle())
        self.factory.channels.add(self)

    def dataReceived(self, data: bytes) -> None:
        if self.is_refused:
            return
        if self.transport.getHandle().getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            # Reset after it had sent this. uvloop tells of a reset once, with the last bytes, and never again.
            self.transport.abortConnection()
            return
        if not self._is_arriving and not self._handlingRequest:
            self._is_arriving = True
            self.setTimeout(settings.BODY_SECONDS)
        _LineReceiver.dataReceived(self, data)  # HTTPChannel's own begins the deadline anew with every byte

    def rawDataReceived(self, data: bytes) -> None:
        if self._handlingRequest:
            self._turn_deaf(data)
        else:
            super().rawDataReceived(data)

    def _finishRequestBody(self, data: bytes) -> None:
        self._turn_deaf(data)
        super()._finishRequestBody(b"")

    def _turn_deaf(self, data: bytes) -> None:
        if data.strip(b"\r\n"):  # some clients end a body with an empty line
            self.persistent = False

    def allContentReceived(self) -> None:
        self._is_arriving = False
        super().allContentReceived()

    def requestDone(self, request: Any) -> None:
        super().requestDone(request)
        if self.persistent and not self._is_arriving and not self._handlingRequest:
            self.setTimeout(KEEP_ALIVE_SECONDS)

    def timeoutConnection(self) -> None:
        if self._is_arriving:
            self.refuse(ApiError("request_timeout", "The request did not arrive in time."))
        else:
            super().timeoutConnection()

    def refuse(self, error: ApiError) -> None:
        """Answer what is still arriving with `error`, and take nothing more of it."""
        if self.is_refused:
            return
        self.is_refused = True
        self._handlingRequest = True
        self.setRawMode()
        self.setTimeout(None)
        self.transport.write(refusal(error))
        # Closed at once, with bytes unread, the kernel would reset the connection and take the answer with it.
        self.transport.loseWriteConnection()
        self._abortingCall = self.callLater(LINGER_SECONDS, self.forceAbortClient)

    def lineLengthExceeded(self, line: bytes) -> None:
        self.refuse(ApiError("invalid_request", "The request's headers are too large."))

    def _respondToBadRequestAndDisconnect(self) -> None:
        self.refuse(ApiError("invalid_request", "This is not an HTTP request, or its headers are too large."))

    def _send100Continue(self) -> None:
        if not self.is_refused:
            super()._send100Continue()

    # --- answers ------------------------------------------------------------------------------------------------------
    @property
    def unsent(self) -> int:
        """Bytes of answers that the kernel has not taken yet."""
        transport = self.transport
        return int(len(transport.dataBuffer) - transport.offset + transport._tempDataLen)

    def pauseProducing(self) -> None:
        super().pauseProducing()
        if self._stall is None:
            self._watch_stall()

    def resumeProducing(self) -> None:
        super().resumeProducing()
        self._end_watch()

    def _watch_stall(self) -> None:
        self._unsent = self.unsent
        self._stall = self.callLater(settings.CLIENT_STALL_SECONDS, self._stalled)

    def _stalled(self) -> None:
        self._stall = None
        if self.unsent < self._unsent:
            self._watch_stall()  # slow, but it reads
        else:
            self.transport.abortConnection()

    def _end_watch(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def loseConnection(self) -> None:
        super().loseConnection()
        if self._abortingCall is None:  # without it, a client that never reads the rest keeps the descriptor
            self._abortingCall = self.callLater(settings.CLIENT_STALL_SECONDS, self.forceAbortClient)

    def connectionLost(self, reason: Any) -> None:
        self.factory.channels.discard(self)
        self._end_watch()
        super().connectionLost(reason)
