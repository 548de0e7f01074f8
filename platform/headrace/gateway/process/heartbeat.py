"""The heartbeat of a process's running requests: deadlines, the client's patience, and the leases of their holds.

One pass over all requests four times a second costs less than a timer for each event of each of them; deadlines hold
to a quarter of a second.
"""

import asyncio
import logging
import secrets
import time

import msgspec
import redis
import redis.asyncio
from django.conf import settings

from billing.usage import SHADOW
from engines.errors import TimedOut
from headrace.gateway.errors import ApiError, lease_lost
from headrace.gateway.operations.estimate import Estimator
from headrace.gateway.state.request_state import ClientLeft, RequestState
from tenants.meters import holds
from tenants.meters.holds import Lost

log = logging.getLogger("headrace.pulse")

_encode = msgspec.json.encode

BEAT_SECONDS = 0.25
_BATCH = 500


class Heartbeat:
    """The running requests of this process."""

    def __init__(self, client: "redis.asyncio.Redis", estimator: Estimator, *, lease_seconds: float) -> None:
        self._redis = client
        self._estimator = estimator
        self._lease = lease_seconds
        self._running: dict[str, RequestState] = {}
        self._is_renewing = True
        self._life = ""  # of the data in Redis: another's are not those our holds were in
        self._beat_at: float | None = None  # when deadlines were last looked at
        self._confirmed_at = 0.0  # when all leases were last renewed because of a standstill
        self._confirming: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._running)

    def add(self, request: RequestState) -> None:
        self._running[request.id] = request

    def remove(self, request: RequestState) -> None:
        self._running.pop(request.id, None)

    def delivering(self, seconds: float) -> set[str]:
        """The replicas of which a stream made progress within the last `seconds`."""
        since = time.monotonic() - seconds
        return {e.replica.name for e in self._running.values() if e.has_first_byte and e.last_event_at >= since}

    async def watch(self) -> None:
        """Interrupt whatever passed one of its deadlines; for ever.

        The time in which the process itself stood still counts against no upstream and no client.
        """
        self._beat_at = time.monotonic()
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            now = time.monotonic()
            still = now - self._beat_at - BEAT_SECONDS
            if still > self._doubtful_after:
                log.warning("the process stood still for %.1f s", still)
                self._begin_confirming()
                for request in self._running.values():
                    request.excuse(still)
            self._beat_at = now
            for request in list(self._running.values()):
                reason = overdue(request, now)
                if isinstance(reason, TimedOut) and reason.which == "first_byte":
                    request.expire(reason)
                elif reason is not None:
                    request.interrupt(reason)
                elif (due := request.on_silence) is not None:
                    due(now)

    # --- after a time in which the process stood still --------------------------------------------------------------
    @property
    def _doubtful_after(self) -> float:
        return self._lease / 3

    def is_in_doubt(self) -> bool:
        """Whether this process stood still so long that leases may have ended, and has not asked Redis since."""
        if self._confirming is not None:
            return True
        if self._beat_at is None:
            return False
        known_at = max(self._beat_at, self._confirmed_at)
        return time.monotonic() - known_at - BEAT_SECONDS > self._doubtful_after

    async def confirm(self) -> None:
        """Renew all leases now; requests that a reaper has settled meanwhile are interrupted before this returns.

        What is read from an upstream while `is_in_doubt` must not be relayed, nor billed, before that. Where Redis does
        not answer, requests go on, as they do in any outage of it.
        """
        self._begin_confirming()
        assert self._confirming is not None
        await asyncio.shield(self._confirming)

    def _begin_confirming(self) -> None:
        if self._confirming is None:
            self._confirming = asyncio.create_task(self._confirm())

    async def _confirm(self) -> None:
        try:
            await self._renew_all(list(self._running.values()))
        finally:
            self._confirmed_at = time.monotonic()
            self._confirming = None

    # --- leases -----------------------------------------------------------------------------------------------------
    async def renew_for_ever(self) -> None:
        """Prolong all leases every third of a lease, and tell of newly opened upstreams within a beat.

        Holds that Redis has lost are put back: within a beat where it has lost everything.
        """
        last = time.monotonic()
        while True:
            await asyncio.sleep(min(BEAT_SECONDS, self._lease / 6))
            due = time.monotonic() - last >= self._lease / 3 or (self._running and await self._is_another_life())
            chosen = [each for each in self._running.values() if due or (each.opened and not each.announced)]
            if due:
                last = time.monotonic()
            await self._renew_all(chosen)

    async def _renew_all(self, requests: list[RequestState]) -> None:
        for start in range(0, len(requests), _BATCH):
            await self._renew(requests[start : start + _BATCH])

    async def _is_another_life(self) -> bool:
        """Whether Redis has lost its data since this was last asked."""
        before = self._life
        try:
            self._life = await holds.life(self._redis, secrets.token_hex(8))
        except redis.RedisError:
            return False
        return before not in {"", self._life}

    async def _renew(self, requests: list[RequestState]) -> None:
        progress = {each.id: self._progress(each) for each in requests}
        steps = {each.id: each.step for each in requests}
        lease_ms = int(self._lease * 1000)
        try:
            states = await holds.renew(self._redis, lease_ms=lease_ms, progress=progress, steps=steps)
            # One without room waits for it, and has lost its place as well: its queue tells it so.
            if lost := [each for each in requests if states[each.id] == "lost" and each.has_room]:
                log.warning("Redis lost %d holds of running requests; they are put back", len(lost))
                told = [_lost(each, progress[each.id], steps[each.id]) for each in lost]
                states |= await holds.rehold(self._redis, lease_ms=lease_ms, lost=told)
        except redis.RedisError as error:
            if self._is_renewing:  # once an outage, not once a try
                log.warning("leases are not renewed: %s", type(error).__name__)
            self._is_renewing = False
            return
        if not self._is_renewing:
            log.warning("leases are renewed again")
        self._is_renewing = True
        for request in requests:
            request.announced = request.announced or progress[request.id] != b""
            if states[request.id] in {"reaped", "ended"} and request.id in self._running:
                request.is_reaped = request.is_reaped or not request.is_ending
                request.interrupt(lease_lost())

    def _progress(self, request: RequestState) -> bytes:
        try:
            return request.progress(self._estimator.bytes_per_token(request.tokenizer))
        except Exception:  # what one request's upstream claims must not cost all others their leases
            log.exception("the progress of a request cannot be told: %s", request.id)
            return b""

    def interrupt_all(self, *, copies_only: bool = False) -> None:
        """The process stops: end whatever still runs; or the shadow copies alone, which nobody waits for."""
        for request in list(self._running.values()):
            if copies_only and request.event.kind != SHADOW:
                continue
            request.interrupt(ApiError("no_capacity", "The gateway is stopping.", retry_after=1))


def _lost(request: RequestState, progress: bytes, step: int) -> Lost:
    record = _encode(request.event)
    return Lost(request_id=request.id, taken=request.taken, record=record, progress=progress, step=step)


def first_byte_seconds(request: RequestState) -> float:
    """How long an attempt may take to its first byte: the route's time, and what reading a long prompt takes more.

    The first byte of an answer that the upstream sends whole comes when all of it is written.
    """
    return request.prompt_seconds if request.streams_upstream else request.whole_seconds


def overdue(request: RequestState, now: float) -> Exception | None:
    """Why `request` must end now; None while all its deadlines hold."""
    route = request.route
    if now - request.admitted_at > route.total_timeout:
        return TimedOut("total")
    if request.sending_since is not None:
        # While the client takes nothing, the upstream is not to blame for its silence. A server that watches its
        # connections sees whether the client takes some of it, and ends one that does not.
        is_stalled = not request.is_watched and now - request.sending_since > settings.CLIENT_STALL_SECONDS
        return ClientLeft("stalled") if is_stalled else None
    if request.attempt_at is None:
        return None
    if not request.has_first_byte:
        return TimedOut("first_byte") if now - request.attempt_at > first_byte_seconds(request) else None
    if not request.streams_upstream:
        return None
    return TimedOut("between_events") if now - request.last_event_at > route.between_events_timeout else None
