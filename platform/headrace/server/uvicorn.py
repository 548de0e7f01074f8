"""Under uvicorn: on SIGTERM it takes no more work, finishes its streams (HEADRACE_DRAIN_SECONDS), settles the rest."""

import socket
from types import FrameType

import uvicorn
from django.conf import settings

from headrace.asgi import data_plane
from headrace.server.rejection import KEEP_ALIVE_SECONDS
from headrace.server.uvicorn_connection import Connection

_CLOSING_SECONDS = 1


class _Server(uvicorn.Server):
    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop, once, however often it is told. uvicorn's own would raise the signal again and end with its status."""
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await data_plane.drain(patience=settings.DRAIN_SECONDS)
        await super().shutdown(sockets)


def serve(host: str, port: int) -> int:
    """Serve until a signal; the exit status."""
    config = uvicorn.Config(
        "headrace.asgi:application",
        host=host,
        port=port,
        loop="uvloop",
        http=Connection,
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_CLOSING_SECONDS,  # of connections alone: their work has ended by then
    )
    server = _Server(config)
    server.run()
    return 0 if server.started else 1
