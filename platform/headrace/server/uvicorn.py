"""Under uvicorn: on SIGTERM it stops accepting, finishes its streams (HEADRACE_DRAIN_SECONDS), settles the rest."""

from types import FrameType

import uvicorn
from django.conf import settings

from headrace.asgi import data_plane


class _Server(uvicorn.Server):
    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        data_plane.begin_stop()
        super().handle_exit(sig, frame)


def serve(host: str, port: int) -> int:
    """Serve until a signal; the exit status."""
    config = uvicorn.Config(
        "headrace.asgi:application",
        host=host,
        port=port,
        loop="uvloop",
        http="httptools",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,  # who is behind a proxy is for HEADRACE_BEHIND_PROXY to say
        timeout_keep_alive=75,  # longer than the usual proxy's, so that it is the proxy that closes
        timeout_graceful_shutdown=int(settings.DRAIN_SECONDS),
    )
    server = _Server(config)
    server.run()
    return 0 if server.started else 1
