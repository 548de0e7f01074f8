"""The base of the data plane's consumers: read a bounded body, work, and stop working when the client leaves.

Channels' own HTTP consumer awaits its handler inside the dispatch loop and hears of a disconnect only afterwards. Here
the work is a task raced against `http.disconnect`, so that a client that left is noticed within milliseconds under any
ASGI server.
"""

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from channels.consumer import AsyncConsumer
from django.conf import settings

from billing.usage import new_request_id
from headrace.gateway.errors import ApiError, Headers
from headrace.gateway.process import metrics
from headrace.gateway.state.request_state import ClientLeft
from headrace.gateway.web_process import Gateway

log = logging.getLogger("headrace.gateway")

_JSON = (b"content-type", b"application/json")
_CLOSE = (b"connection", b"close")


class StreamingConsumer(AsyncConsumer, ABC):  # type: ignore[misc]
    """One request. Subclasses give `methods` and `handle`; `before_body` may refuse by the headers alone."""

    methods: ClassVar[frozenset[str]] = frozenset({"GET", "HEAD"})
    outlives_stop: ClassVar[bool] = False  # whether it is still served by a process that has been told to stop

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.request_id = ""
        self.started = self.ended = False
        self.is_arriving = True

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scope, self.receive, self.base_send = scope, receive, send
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.drop = scope.get("extensions", {}).get("headrace.drop")
        self.request_id = str(new_request_id(int(time.time() * 1000)))
        try:
            await self._serve()
        except ApiError as error:
            metrics.REFUSED.labels(error.code).inc()
            self.note_refusal(error.code)
            await self.refuse(error)
        except ClientLeft:
            return
        except Exception:  # the outermost boundary: a defect is a 500 with an id to look up, not a dropped connection
            log.exception("request %s failed", self.request_id)
            await self.refuse(ApiError("internal_error", "Headrace failed on this request."))
        if self.started and not self.ended:
            await self._drop()

    def note_refusal(self, code: str) -> None:
        """The request is refused with the error `code`, before it was admitted."""

    async def _serve(self) -> None:
        if self.scope["method"] not in self.methods:
            methods = sorted(self.methods)
            raise ApiError("method_not_allowed", f"Use {' or '.join(methods)} here.", allow=", ".join(methods))
        await self.before_body()
        body = await self._body()
        self.is_arriving = False
        if self.gateway.is_stopping and not self.outlives_stop:
            raise ApiError("no_capacity", "The gateway is stopping.", retry_after=1)
        self.gateway.working += 1
        try:
            await self._race(body)
        finally:
            self.gateway.working -= 1

    async def _race(self, body: bytes) -> None:
        work = asyncio.create_task(self.handle(body))
        gone = asyncio.create_task(self._disconnected())
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:  # also when the server itself cancels us
            gone.cancel()
            if not work.done():
                self.leave(work)
        try:
            await work
        except asyncio.CancelledError:
            return

    async def _drop(self) -> None:
        """End the connection of an answer that is given up midway, where the server lets us: its client may be there,
        and only not read."""
        if self.drop is not None:
            self.drop()
            await asyncio.sleep(0)  # so that the server learns of it before we return

    async def before_body(self) -> None:
        """Refuse what can be refused before the body is read."""

    def require_ready(self) -> None:
        """Without the configuration no key is known, which is not the caller's fault. Raises ApiError."""
        if not self.gateway.snapshot.ready.is_set():
            raise ApiError("starting", "Headrace is starting.", retry_after=1)

    @abstractmethod
    async def handle(self, body: bytes) -> None:
        """Answer the request. Raises ApiError; what it raises else is our defect."""

    def leave(self, work: "asyncio.Task[None]") -> None:
        """The client is gone: end the work."""
        work.cancel()

    # --- the request --------------------------------------------------------------------------------------------------
    def header(self, name: bytes) -> bytes:
        """A header's value; empty when absent. Of one sent twice, the last."""
        return self.headers.get(name, b"")

    async def _body(self) -> bytes:
        """The body, within HEADRACE_BODY_LIMIT bytes and HEADRACE_BODY_SECONDS. Raises ApiError, ClientLeft."""
        declared = self.header(b"content-length")
        if declared.isdigit() and int(declared) > settings.BODY_LIMIT:
            raise ApiError("body_too_large", f"The body is larger than {settings.BODY_LIMIT} bytes.")
        if self.header(b"content-encoding") not in {b"", b"identity"}:
            raise ApiError("invalid_request", "A compressed body is not accepted.")
        try:
            async with asyncio.timeout(settings.BODY_SECONDS):
                return await self._read()
        except TimeoutError:
            raise ApiError("request_timeout", "The body did not arrive in time.") from None

    async def _read(self) -> bytes:
        pieces: list[bytes] = []
        size = 0
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientLeft("before its body had come")
            piece = message.get("body", b"")
            size += len(piece)
            if size > settings.BODY_LIMIT:
                raise ApiError("body_too_large", f"The body is larger than {settings.BODY_LIMIT} bytes.")
            pieces.append(piece)
            if not message.get("more_body"):
                return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def _disconnected(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            continue

    # --- the answer ---------------------------------------------------------------------------------------------------
    async def start(self, status: int, headers: Headers) -> None:
        self.started = True
        all_headers = [*headers, (b"x-request-id", self.request_id.encode())]
        await self.base_send({"type": "http.response.start", "status": status, "headers": all_headers})

    async def write(self, body: bytes, *, more: bool = True) -> None:
        await self.base_send({"type": "http.response.body", "body": body, "more_body": more})
        self.ended = not more

    async def respond(self, status: int, body: bytes, headers: Headers | None = None) -> None:
        """A whole JSON answer."""
        length = (b"content-length", b"%d" % len(body))
        await self.start(status, [_JSON, length, *(headers or [])])
        await self.write(b"" if self.scope["method"] == "HEAD" else body, more=False)

    async def refuse(self, error: ApiError) -> None:
        """Answer with `error`; nothing where an answer has begun, which whoever began it ends."""
        if not self.started:
            # A body that is not read is not worth the rest of the connection either; and one that waits for our 100
            # may never come: what the client sends next would be taken for it.
            is_last = self.is_arriving and (error.status in {408, 413} or self.header(b"expect") != b"")
            await self.respond(
                error.status, error.as_json(), [*error.headers(), _CLOSE] if is_last else error.headers()
            )
