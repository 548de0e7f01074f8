"""Under Daphne, on uvloop, with what it lacks: flow control, bounded bodies, and a stop that finishes its streams."""

import asyncio
import signal
from typing import Any

import uvloop

# Daphne makes its event loop, and installs Twisted's reactor on it, when it is imported.
asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())

from daphne.server import Server  # noqa: E402
from django.conf import settings  # noqa: E402
from twisted.internet import defer, reactor  # noqa: E402

from headrace.asgi import application, data_plane  # noqa: E402
from headrace.server.daphne_request import BoundedFactory, BoundedRequest  # noqa: E402

_CLOSING_SECONDS = 1.0


class _Server(Server):  # type: ignore[misc]
    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._ports: list[Any] = []
        self._stopping: asyncio.Task[None] | None = None
        super().__init__(*arguments, **options, ready_callable=self._ready)

    @property
    def http_factory(self) -> BoundedFactory:
        return self._factory

    @http_factory.setter
    def http_factory(self, _: Any) -> None:
        self._factory = BoundedFactory(self)  # Daphne's run() makes its own one and sets it here

    def listen_success(self, port: Any) -> None:
        super().listen_success(port)
        self._ports.append(port)

    def _ready(self) -> None:
        reactor.callWhenRunning(self._begin)

    def _begin(self) -> None:
        """The reactor runs: start the data plane, and take the signals Twisted would answer by dropping everything."""
        loop = asyncio.get_event_loop()
        self._starting = loop.create_task(data_plane.start())
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._begin_stop)

    def _begin_stop(self) -> None:
        if self._stopping is None:
            self._stopping = asyncio.get_event_loop().create_task(self._stop())

    async def _stop(self) -> None:
        await data_plane.drain(patience=settings.DRAIN_SECONDS)
        for port in self._ports:
            await defer.maybeDeferred(port.stopListening).asFuture(asyncio.get_event_loop())
        await self._close_connections()
        await data_plane.stop()
        self.stop()

    async def _close_connections(self) -> None:
        """Close each once its last bytes are sent: a reactor that stops throws them away."""
        for channel in list(self._factory.channels):
            channel.loseConnection()
        for _ in range(round(_CLOSING_SECONDS / 0.02)):
            if not self._factory.channels:
                return
            await asyncio.sleep(0.02)

    def create_application(self, protocol: Any, scope: dict[str, Any]) -> Any:
        if isinstance(protocol, BoundedRequest):
            scope["extensions"] = {"headrace.drop": protocol.drop}
        return super().create_application(protocol, scope)

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        """Pass a reply on; hold the application back while the client does not read."""
        await super().handle_reply(protocol, message)
        if isinstance(protocol, BoundedRequest) and not protocol.room.is_set():
            await protocol.room.wait()


def serve(host: str, port: int) -> int:
    """Serve until a signal; the exit status."""
    server = _Server(
        application,
        endpoints=[f"tcp:port={port}:interface={host.replace(':', chr(92) + ':')}"],
        signal_handlers=False,
        request_buffer_size=64 * 1024,
        verbosity=0,
        server_name="",
    )
    server.run()
    return 1 if server.abort_start else 0
