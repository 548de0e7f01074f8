"""/healthz (this process runs), /readyz (it can serve what it has keys and routes for), /metrics."""

import asyncio
import hmac

import msgspec
from django.conf import settings

from headrace.gateway.errors import ApiError
from headrace.gateway.process import metrics
from headrace.gateway.process.shared_metrics import shared
from headrace.gateway.relay.consumer import StreamingConsumer

_PIECE = 128 * 1024
_LOOPBACK = ("127.0.0.1", "::1")
_FORWARDED = frozenset({b"x-forwarded-for", b"x-real-ip", b"forwarded", b"via"})


class HealthConsumer(StreamingConsumer):
    outlives_stop = True

    async def handle(self, body: bytes) -> None:
        await self.respond(200, b'{"status":"ok"}')


class ReadyConsumer(StreamingConsumer):
    """Ready means serving from memory works: a database outage alone takes no process out of rotation."""

    outlives_stop = True

    async def handle(self, body: bytes) -> None:
        snapshot = self.gateway.snapshot
        is_ready = snapshot.ready.is_set() and not self.gateway.is_stopping
        state = {
            "ready": is_ready,
            "stopping": self.gateway.is_stopping,
            "configuration_age_seconds": round(snapshot.age, 1) if snapshot.ready.is_set() else None,
            "running": len(self.gateway.pulse),
            "spooled": self.gateway.spool.pending,
        }
        await self.respond(200 if is_ready else 503, msgspec.json.encode(state))


class MetricsConsumer(StreamingConsumer):
    """For loopback, or whoever has HEADRACE_METRICS_TOKEN. A proxy on this machine is not loopback."""

    outlives_stop = True

    async def handle(self, body: bytes) -> None:
        if not (self._is_local() or self._has_token()):
            raise ApiError("invalid_api_key", "Metrics need the bearer token of HEADRACE_METRICS_TOKEN.")
        text = await metrics.render(await shared(self.gateway.redis, self.gateway.load))
        headers = [(b"content-type", b"text/plain; version=0.0.4; charset=utf-8")]
        await self.start(200, [*headers, (b"content-length", b"%d" % len(text))])
        if self.scope["method"] != "HEAD":
            for start in range(0, len(text), _PIECE):  # sending megabytes in one go would take tens of milliseconds
                await self.write(text[start : start + _PIECE])
                await asyncio.sleep(0)
        await self.write(b"", more=False)

    def _is_local(self) -> bool:
        client = self.scope.get("client")
        return bool(client) and client[0] in _LOOPBACK and _FORWARDED.isdisjoint(self.headers)

    def _has_token(self) -> bool:
        sent = self.header(b"authorization").removeprefix(b"Bearer ")
        return bool(settings.METRICS_TOKEN) and hmac.compare_digest(sent, settings.METRICS_TOKEN.encode())
