"""Every way a request ends leads here, once: count, settle in Redis or in the spool, log, measure."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Coroutine
from typing import Any

import redis
import redis.asyncio

from billing.usage import UsageEvent, log_line
from engines.client import Client
from headrace.gateway.answers.usage_meter import Counts
from headrace.gateway.operations.estimate import Estimator
from headrace.gateway.process import metrics
from headrace.gateway.process.heartbeat import Heartbeat
from headrace.gateway.process.placement import Placement
from headrace.gateway.process.queueing import Queueing
from headrace.gateway.settlement.final_settlement import Settlement, deliver
from headrace.gateway.settlement.spool import Spool
from headrace.gateway.state.request_state import RequestState
from tenants.meters.meter import COST, INPUT_TOKENS, OUTPUT_TOKENS

log = logging.getLogger("headrace.settler")
requests_log = logging.getLogger("headrace.requests")


class Settler:
    """Ends requests. Each ends in a task of its own, which no cancellation of the request reaches."""

    def __init__(
        self,
        *,
        client: Client,
        estimator: Estimator,
        placing: Placement,
        pulse: Heartbeat,
        queueing: Queueing,
        redis: "redis.asyncio.Redis",
        spool: Spool,
    ) -> None:
        self._client, self._estimator, self._placing = client, estimator, placing
        self._pulse, self._queueing = pulse, queueing
        self._redis, self._spool = redis, spool
        self._endings: dict[str, asyncio.Task[Counts]] = {}

    async def finish(
        self, request: RequestState, status: str, *, before: Coroutine[Any, Any, None] | None = None
    ) -> Counts:
        """End `request` as `status`, after `before` (hanging up); what is billed. Only the first call decides."""
        ending = self._endings.get(request.id)
        if ending is None:
            request.is_ending = True
            ending = asyncio.create_task(self._finish(request, status, before))
            self._endings[request.id] = ending
            ending.add_done_callback(lambda _: self._endings.pop(request.id, None))
        elif before is not None:
            before.close()
        return await asyncio.shield(ending)

    async def settled(self) -> None:
        """Wait for all endings under way."""
        while self._endings:
            await asyncio.wait(set(self._endings.values()))

    async def _finish(self, request: RequestState, status: str, before: Awaitable[None] | None) -> Counts:
        try:
            try:
                if before is not None:
                    await before
                await self._count(request)
            except Exception:  # a failed hang-up or count must not keep the money from being settled
                log.exception("ending a request failed, settling what is known: %s", request.id)
            return await self._settle(request, status)
        finally:  # whatever went wrong: a hold that nobody settles must not be renewed for ever
            self._pulse.remove(request)
            self._queueing.forget(request.id)
            self._placing.ended(request)

    async def _settle(self, request: RequestState, status: str) -> Counts:
        counts = request.counts(self._estimator.bytes_per_token(request.tokenizer))
        event = request.record(status, counts)
        word = Settlement(
            request_id=request.id,
            used=_used(request, status, counts) | {COST: event.cost_nano or 0},
            taken=request.taken.as_json().decode(),
            event=event,
            is_received=request.operation.stream,  # a whole answer is given once it is settled
        )
        try:
            await deliver(self._redis, word)
        except redis.RedisError:
            # One that is not known to be reaped is given, whatever becomes of Redis.
            word.is_received = word.is_received or (status == "ok" and not word.was_reaped)
            await self._spool.append(word)
        if word.was_reaped:
            request.is_reaped = True
            if not word.is_received:
                counts, event = Counts(), request.record("error" if status == "ok" else status, Counts())
        self._tell(request, event, counts)
        return counts

    async def _count(self, request: RequestState) -> None:
        """Have the engine's tokenizer count what was delivered, and the prompt, where the upstream counted nothing."""
        meter, upstream = request.meter, request.replica.upstream
        if not request.has_first_byte:
            return
        if meter.has_output and not meter.is_reported and (texts := meter.texts) is not None:
            request.counted = await self._client.count(upstream, texts)
        if request.counted_prompt is None and not meter.has_prompt and request.operation.is_text:
            request.counted_prompt = await self._client.count_prompt(upstream, request.operation.upstream_fields())

    def _tell(self, request: RequestState, event: UsageEvent, counts: Counts) -> None:
        if counts.source == "reported" and counts.input_tokens:
            self._estimator.learn(request.tokenizer, request.operation, counts.input_tokens)
        seconds = time.monotonic() - request.admitted_at
        try:
            metrics.observe(event, request.route, seconds=seconds, is_streamed=request.operation.stream)
            for which in sorted(request.meter.overrun):
                log.warning("%s: %s gave or told more %s than was asked for", request.id, event.replica, which)
                metrics.OVERRUNS.labels(event.model, event.target, which).inc()
        except OSError as error:  # a first value opens its file; what is settled is not undone for want of one
            log.error("a request is not in the metrics: %s", error)
        requests_log.info("%s", log_line(event).decode())


def _used(request: RequestState, status: str, counts: Counts) -> dict[str, int]:
    """What each bucket keeps of what was held; requests and concurrency are as the hold says."""
    if request.has_first_byte or request.is_blind:
        return {INPUT_TOKENS: request.limited_input(counts), OUTPUT_TOKENS: counts.output_tokens}
    if status == "cancelled" and request.opened:
        return {OUTPUT_TOKENS: 0}  # the prompt was prefilled for nothing: no free prefills
    return {INPUT_TOKENS: 0, OUTPUT_TOKENS: 0}
