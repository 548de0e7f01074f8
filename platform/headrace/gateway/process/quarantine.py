"""Queries of death in the gateway: which failures are breaks, and all web processes' knowledge of them.

Breaks are a bounded stream in Redis, `hr:breaks`: who notes one appends it at once, and every process reads what is new
four times a second, so that no request waits for it. A process that starts reads what is there. While Redis is away
each process goes by what it saw itself.
"""

import asyncio
import logging
import secrets
from collections import deque

import redis
import redis.asyncio

from engines.errors import Died, Disconnected, Incomplete, Stale, Unreachable, UpstreamError
from headrace.gateway.errors import ApiError
from headrace.gateway.operations.operation import Operation
from headrace.gateway.process import metrics
from headrace.gateway.state.request_state import RequestState
from headrace_core import store_keys
from routing.quarantine import MOST_PROMPTS, Quarantine
from tenants.keyring import Principal

log = logging.getLogger("headrace.quarantine")

KEY = store_keys.BREAKS
REFRESH_SECONDS = 0.25
_BATCH = 1000


class SharedQuarantine:
    """The quarantine of one process, kept equal to the others'."""

    def __init__(self, secret: str, client: "redis.asyncio.Redis") -> None:
        self._table = Quarantine(secret)
        self._redis = client
        self._origin = secrets.token_hex(8)
        self._unsent: deque[dict[str, str | bytes]] = deque(maxlen=MOST_PROMPTS)
        self._sending = asyncio.Lock()
        self._last = "0-0"

    def require_allowed(self, principal: Principal, operation: Operation) -> None:
        """Raises ApiError where the prompt broke engines and is refused."""
        if not self._table.has_suspects(principal.tenant, operation.model):
            return
        wait = self._table.wait(self._digest(principal.tenant, operation))
        if wait > 0:
            raise ApiError(
                "prompt_quarantined",
                "Engines broke down at this prompt repeatedly; it is refused for a while, whatever the other fields.",
                param="messages",
                retry_after=wait,
            )

    async def note_break(self, request: RequestState, replica: str) -> bool:
        """An engine broke at the request's prompt; whether the prompt is refused from now on, as all processes then
        know."""
        tenant, model = request.principal.tenant, request.operation.model
        before = request.event.labels.get("engines_broken")
        request.event.labels["engines_broken"] = f"{before}; {replica}" if before else replica
        digest = self._digest(tenant, request.operation)
        is_refused = self._table.note_break(digest, tenant, model, replica)
        self._unsent.append(
            {"digest": digest, "tenant": tenant, "model": model, "replica": replica, "origin": self._origin}
        )
        await self._send()
        if is_refused:
            request.event.labels["quarantined"] = "yes"
            metrics.QUARANTINED.set(self._table.refused)
            log.warning(
                "a query of death: %s of tenant %s for %s broke %s; its prompt is refused for %.0f s",
                request.id, tenant, model, request.event.labels["engines_broken"], self._table.wait(digest),
            )  # fmt: skip
            await asyncio.sleep(REFRESH_SECONDS)  # so that the client's next try is refused wherever it comes
        return is_refused

    def note_answer(self, request: RequestState) -> None:
        """The request's prompt was answered whole."""
        tenant, model = request.principal.tenant, request.operation.model
        if self._table.has_suspects(tenant, model):
            digest = self._digest(tenant, request.operation)
            if self._table.forgive(digest):
                self._unsent.append({"digest": digest, "origin": self._origin, "answered": "1"})

    async def follow(self) -> None:
        """Tell and hear of breaks for ever."""
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            await self._send()
            try:
                await self._hear()
            except redis.RedisError:
                continue  # asked again in a moment
            metrics.QUARANTINED.set(self._table.refused)

    async def read(self) -> None:
        """Hear of all breaks that Redis keeps. Raises RedisError."""
        before = None
        while before != self._last:
            before = self._last
            await self._hear()

    async def _send(self) -> None:
        """Append what is not told yet. What Redis does not take now waits for the next time."""
        async with self._sending:
            batch = [self._unsent[at] for at in range(min(_BATCH, len(self._unsent)))]
            if not batch:
                return
            try:
                async with self._redis.pipeline(transaction=False) as pipeline:
                    for event in batch:
                        pipeline.xadd(KEY, event, maxlen=MOST_PROMPTS, approximate=True)  # type: ignore[arg-type]
                    await pipeline.execute()
            except redis.RedisError:
                return
            for _ in batch[: len(self._unsent)]:
                self._unsent.popleft()

    async def _hear(self) -> None:
        async with self._redis.pipeline(transaction=False) as pipeline:
            pipeline.time()
            pipeline.xrange(KEY, min=f"({self._last}", count=_BATCH)
            (seconds, micros), events = await pipeline.execute()
        now_ms = int(seconds) * 1000 + int(micros) // 1000
        for event_id, event in events:
            self._last = event_id.decode()
            if event.get(b"origin") != self._origin.encode() and (digest := event.get(b"digest")):
                self._take(digest, event, max(0.0, (now_ms - int(event_id.partition(b"-")[0])) / 1000))

    def _take(self, digest: bytes, event: dict[bytes, bytes], age: float) -> None:
        if b"answered" in event:
            self._table.forgive(digest)
            return
        tenant, model, replica = (event.get(name, b"").decode() for name in (b"tenant", b"model", b"replica"))
        self._table.note_break(digest, tenant, model, replica, age=age)

    def _digest(self, tenant: str, operation: Operation) -> bytes:
        return self._table.digest(tenant, operation.model, operation.prompt_text())


class Breaks:
    """The engines that broke at one request."""

    def __init__(self, quarantine: SharedQuarantine, request: RequestState) -> None:
        self._quarantine, self._request = quarantine, request
        self._doubted: str | None = None  # a replica whose connection was lost, perhaps before it had the request
        self.is_doubt_used = False

    async def note(self, error: UpstreamError) -> bool:
        """An attempt failed by `error`; whether no engine may be asked any more."""
        request = self._request
        replica = request.replica.name
        if isinstance(error, Stale) and not self.is_doubt_used:
            self._doubted, self.is_doubt_used = replica, True
            return False
        if not is_break(error, is_out=request.attempt is not None and request.attempt.is_out):
            return False
        self.is_doubt_used = True  # engines break at this request: no further loss is an old connection's
        is_over = False
        if self._doubted not in {None, replica}:
            is_over = await self._quarantine.note_break(request, str(self._doubted))
        self._doubted = None
        return await self._quarantine.note_break(request, replica) or is_over


def is_break(error: UpstreamError, *, is_out: bool) -> bool:
    """Whether an engine that had the request broke at it: its connection was lost, or it was said to have died."""
    if isinstance(error, Incomplete):
        return False
    if isinstance(error, Unreachable):
        return is_out
    return isinstance(error, Disconnected | Died)
