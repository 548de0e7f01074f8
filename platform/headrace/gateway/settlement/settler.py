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
from headrace.gateway.process.heartbeat import Pulse
from headrace.gateway.process.placement import Placing
from headrace.gateway.process.queueing import Queueing
from headrace.gateway.settlement.final_settlement import FinalWord, deliver
from headrace.gateway.settlement.spool import Spool
from headrace.gateway.state.request_state import Exchange
from tenants.meters.meter import COST, INPUT_TOKENS, OUTPUT_TOKENS

log = logging.getLogger("headrace.settler")
requests_log = logging.getLogger("headrace.requests")


class Settler:
    """Ends exchanges. Each ends in a task of its own, which no cancellation of the request reaches."""

    def __init__(
        self,
        *,
        client: Client,
        estimator: Estimator,
        placing: Placing,
        pulse: Pulse,
        queueing: Queueing,
        redis: "redis.asyncio.Redis",
        spool: Spool,
    ) -> None:
        self._client, self._estimator, self._placing = client, estimator, placing
        self._pulse, self._queueing = pulse, queueing
        self._redis, self._spool = redis, spool
        self._endings: dict[str, asyncio.Task[Counts]] = {}

    async def finish(
        self, exchange: Exchange, status: str, *, before: Coroutine[Any, Any, None] | None = None
    ) -> Counts:
        """End `exchange` as `status`, after `before` (hanging up); what is billed. Only the first call decides."""
        ending = self._endings.get(exchange.id)
        if ending is None:
            exchange.is_ending = True
            ending = asyncio.create_task(self._finish(exchange, status, before))
            self._endings[exchange.id] = ending
            ending.add_done_callback(lambda _: self._endings.pop(exchange.id, None))
        elif before is not None:
            before.close()
        return await asyncio.shield(ending)

    async def settled(self) -> None:
        """Wait for all endings under way."""
        while self._endings:
            await asyncio.wait(set(self._endings.values()))

    async def _finish(self, exchange: Exchange, status: str, before: Awaitable[None] | None) -> Counts:
        try:
            try:
                if before is not None:
                    await before
                await self._count(exchange)
            except Exception:  # a failed hang-up or count must not keep the money from being settled
                log.exception("ending a request failed, settling what is known: %s", exchange.id)
            return await self._settle(exchange, status)
        finally:  # whatever went wrong: a hold that nobody settles must not be renewed for ever
            self._pulse.remove(exchange)
            self._queueing.forget(exchange.id)
            self._placing.ended(exchange)

    async def _settle(self, exchange: Exchange, status: str) -> Counts:
        counts = exchange.counts(self._estimator.bytes_per_token(exchange.tokenizer))
        event = exchange.record(status, counts)
        word = FinalWord(
            request_id=exchange.id,
            used=_used(exchange, status, counts) | {COST: event.cost_nano or 0},
            taken=exchange.taken.as_json().decode(),
            event=event,
            is_received=exchange.operation.stream,  # a whole answer is given once it is settled
        )
        try:
            await deliver(self._redis, word)
        except redis.RedisError:
            # One that is not known to be reaped is given, whatever becomes of Redis.
            word.is_received = word.is_received or (status == "ok" and not word.was_reaped)
            await self._spool.append(word)
        if word.was_reaped:
            exchange.is_reaped = True
            if not word.is_received:
                counts, event = Counts(), exchange.record("error" if status == "ok" else status, Counts())
        self._tell(exchange, event, counts)
        return counts

    async def _count(self, exchange: Exchange) -> None:
        """Have the engine's tokenizer count what was delivered, and the prompt, where the upstream counted nothing."""
        meter, upstream = exchange.meter, exchange.replica.upstream
        if not exchange.has_first_byte:
            return
        if meter.has_output and not meter.is_reported and (texts := meter.texts) is not None:
            exchange.counted = await self._client.count(upstream, texts)
        if exchange.counted_prompt is None and not meter.has_prompt and exchange.operation.is_text:
            exchange.counted_prompt = await self._client.count_prompt(upstream, exchange.operation.upstream_fields())

    def _tell(self, exchange: Exchange, event: UsageEvent, counts: Counts) -> None:
        if counts.source == "reported" and counts.input_tokens:
            self._estimator.learn(exchange.tokenizer, exchange.operation, counts.input_tokens)
        seconds = time.monotonic() - exchange.admitted_at
        try:
            metrics.observe(event, exchange.route, seconds=seconds, is_streamed=exchange.operation.stream)
            for which in sorted(exchange.meter.overrun):
                log.warning("%s: %s gave or told more %s than was asked for", exchange.id, event.replica, which)
                metrics.OVERRUNS.labels(event.model, event.target, which).inc()
        except OSError as error:  # a first value opens its file; what is settled is not undone for want of one
            log.error("a request is not in the metrics: %s", error)
        requests_log.info("%s", log_line(event).decode())


def _used(exchange: Exchange, status: str, counts: Counts) -> dict[str, int]:
    """What each bucket keeps of what was held; requests and concurrency are as the hold says."""
    if exchange.has_first_byte or exchange.is_blind:
        return {INPUT_TOKENS: exchange.limited_input(counts), OUTPUT_TOKENS: counts.output_tokens}
    if status == "cancelled" and exchange.opened:
        return {OUTPUT_TOKENS: 0}  # the prompt was prefilled for nothing: no free prefills
    return {INPUT_TOKENS: 0, OUTPUT_TOKENS: 0}
