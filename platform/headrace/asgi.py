"""The ASGI application, for any server: `/v1/*`, health and metrics go to Channels consumers, the rest to Django."""

import asyncio
import os
from typing import Any

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "headrace.settings")
os.environ.setdefault("HEADRACE_DB_POOLED", "1")  # each request has a thread of its own, which would connect anew
# Django has to be set up before anything below reads its settings.
_screens = get_asgi_application()

from channels.routing import ProtocolTypeRouter  # noqa: E402
from django.conf import settings  # noqa: E402
from django.urls import get_resolver  # noqa: E402

from headrace.gateway.endpoints.chat import ChatConsumer  # noqa: E402
from headrace.gateway.endpoints.health import HealthConsumer, MetricsConsumer, ReadyConsumer  # noqa: E402
from headrace.gateway.endpoints.model_list import ModelsConsumer  # noqa: E402
from headrace.gateway.endpoints.not_found import UnknownConsumer  # noqa: E402
from headrace.gateway.relay.consumer import StreamingConsumer  # noqa: E402
from headrace.gateway.web_process import Gateway  # noqa: E402
from headrace_core import gc_tuning  # noqa: E402

if settings.SERVE != "data":
    # Django imports the screens at the first request for one, in the event loop: half a second for every stream.
    _ = get_resolver().url_patterns

PATHS: dict[str, type[StreamingConsumer]] = {
    "/v1/chat/completions": ChatConsumer,
    "/v1/models": ModelsConsumer,
    "/health": ReadyConsumer,  # as engines call it, and what asks for engines
    "/healthz": HealthConsumer,
    "/readyz": ReadyConsumer,
    "/metrics": MetricsConsumer,
}
# What SDKs ask for whose base address lacks the /v1.
_ASTRAY = frozenset({"/chat/completions", "/completions", "/embeddings", "/models", "/responses"})


def _consumer(path: str) -> type[StreamingConsumer] | None:
    """What serves `path`; None for a screen. HEADRACE_SERVE leaves out the screens or the API."""
    if path == "/v1" or path.startswith("/v1/"):
        if settings.SERVE == "screens":
            return UnknownConsumer
        return PATHS.get(path) or (ModelsConsumer if path.startswith("/v1/models/") else UnknownConsumer)
    if path in _ASTRAY or path.startswith("//"):
        return UnknownConsumer
    return PATHS.get(path) or (UnknownConsumer if settings.SERVE == "data" else None)


class DataPlane:
    """Everything that is not a screen. Its gateway starts with the server (lifespan), or at the first request."""

    def __init__(self) -> None:
        self._gateway: Gateway | None = None

    def gateway(self) -> Gateway:
        """The gateway of this process, started in the running loop."""
        if self._gateway is None:
            self._gateway = Gateway()
            self._gateway.start()
        return self._gateway

    async def http(self, scope: Any, receive: Any, send: Any) -> None:
        consumer = _consumer(scope["path"])
        if consumer is None:
            await _screens(scope, receive, send)
        else:
            await consumer(self.gateway())(scope, receive, send)

    async def lifespan(self, scope: Any, receive: Any, send: Any) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await self.start()
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def start(self, *, patience: float = 2.0) -> None:
        """Start, and wait a moment for the configuration: a database that is away must not keep us from starting."""
        gateway = self.gateway()
        try:
            async with asyncio.timeout(patience):
                await gateway.snapshot.ready.wait()
        except TimeoutError:
            return  # /readyz tells
        finally:
            gc_tuning.freeze_loaded()

    async def drain(self, *, patience: float) -> None:
        """Take no more work (/readyz says so), let what runs finish for `patience` seconds, then end and settle it."""
        if self._gateway is not None:
            await self._gateway.drain(patience=patience)

    async def stop(self) -> None:
        """Settle what still runs and close all connections."""
        if self._gateway is not None:
            await self._gateway.stop()


data_plane = DataPlane()
application = ProtocolTypeRouter({"http": data_plane.http, "lifespan": data_plane.lifespan})
