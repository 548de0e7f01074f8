"""Daphne's request, with a bounded body and with flow control."""

import asyncio
from io import BytesIO
from typing import Any

from daphne.http_protocol import HTTPFactory, WebRequest
from django.conf import settings
from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer

from headrace.gateway.errors import ApiError
from headrace.server.daphne_channel import BoundedChannel


@implementer(IPushProducer)
class BoundedRequest(WebRequest):  # type: ignore[misc]
    """`room` is set while the client reads: Twisted pauses its producer when 64 KiB wait to be sent."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.room = asyncio.Event()
        self.room.set()
        self._received = 0
        super().__init__(*args, **kwargs)

    # --- the answer ---------------------------------------------------------------------------------------------------
    def handle_reply(self, message: dict[str, Any]) -> None:
        if self.finished or self.channel is None:
            return
        if message["type"] == "http.response.start":
            super().handle_reply(message)
            self.registerProducer(self, True)
            return
        if not message.get("more_body", False) and self.producer is not None:
            self.unregisterProducer()
        super().handle_reply(message)

    def drop(self) -> None:
        """End the connection at once, whatever is still to be sent."""
        if self.channel is not None:
            self.channel.transport.abortConnection()

    def pauseProducing(self) -> None:
        self.room.clear()

    def resumeProducing(self) -> None:
        self.room.set()

    def stopProducing(self) -> None:
        self.room.set()

    def connectionLost(self, reason: Any) -> None:
        self.room.set()
        super().connectionLost(reason)

    # --- the body -----------------------------------------------------------------------------------------------------
    def gotLength(self, length: int | None) -> None:
        self.content = BytesIO()  # Twisted's own is a file from 100 kB on, written in the event loop
        if length is not None and length > settings.BODY_LIMIT:
            self._refuse_body()

    def handleContentChunk(self, data: bytes) -> None:
        self._received += len(data)
        if self._received > settings.BODY_LIMIT:
            self._refuse_body()
        else:
            super().handleContentChunk(data)

    def process(self) -> Any:
        if self.channel.is_refused:
            return None
        self.requestHeaders.removeHeader(b"Upgrade")  # we speak nothing else; Daphne would hand the connection over
        return super().process()

    def _refuse_body(self) -> None:
        self.channel.refuse(ApiError("body_too_large", f"The body is larger than {settings.BODY_LIMIT} bytes."))


class BoundedFactory(HTTPFactory):  # type: ignore[misc]
    """Makes BoundedChannels, of which `channels` are open, and their BoundedRequests."""

    protocol = BoundedChannel

    def __init__(self, server: Any) -> None:
        super().__init__(server)
        self.timeOut = settings.BODY_SECONDS
        self.channels: set[BoundedChannel] = set()

    def buildProtocol(self, address: Any) -> Any:
        protocol = super().buildProtocol(address)
        protocol.requestFactory = BoundedRequest
        return protocol
