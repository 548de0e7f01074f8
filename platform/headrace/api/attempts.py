"""The attempts of one request: until the first byte, what one upstream fails at may be asked of the next.

The next replica of the target, then the next target of the route; each gets the request once, within the retry budget
and past no breaker that is open. What the client caused is not asked again, and after the first byte nothing is: the
answer is one upstream's or none. An attempt begins after the one before it is closed, under a new name, and once the
hold has moved to it. Where all others are full it waits its turn, as one that just came, if its route lets it.
"""

import asyncio
from typing import Protocol

from engines.errors import AccountRefused, Busy, Failed, Rejected, TimedOut, UpstreamError
from headrace.api import metrics
from headrace.api.exchange import Exchange
from headrace.api.gateway import Gateway
from headrace.api.moving import move, next_places, wait
from headrace.api.turn import wait_for_room
from routing.breaker import Pass
from routing.catalog import Replica

# How long an upstream that refuses our account is left alone: nobody tops it up within seconds.
_ACCOUNT_SECONDS = 60.0


class LeftAlone(Busy):
    """Nobody was asked: the breaker opened, or another request began to try, since the replica was chosen."""


class Answering(Protocol):
    """An answer, streamed or whole, that can be attempted again until its first byte."""

    async def attempt(self) -> None:
        """Get the answer from the exchange's replica. Raises UpstreamError."""

    async def give_up(self, error: UpstreamError) -> None:
        """End an attempt that failed by `error`; on return it is closed."""


async def answer_by_any(gateway: Gateway, exchange: Exchange, answer: Answering) -> None:
    """Have the answer given by the exchange's replica, once it has room, or, before the first byte, by another.

    Raises UpstreamError: the most telling of the failures; ApiError where the request cannot go on.
    """
    if exchange.waits_for:
        await wait_for_room(gateway, exchange, exchange.waits_for)
    gateway.retries.note_request(exchange.route.model)
    failures: list[UpstreamError] = []
    tried: list[Replica] = []
    first = exchange.target
    while True:
        tried.append(exchange.replica)
        try:
            await _attempt(gateway, exchange, answer)
            return
        except UpstreamError as error:
            _note(exchange, error)
            if isinstance(error, Rejected) and failures and exchange.target != first:
                raise _told(failures) from None  # what another target refuses, the first might have taken
            failures.append(error)
            if exchange.has_first_byte or not is_retryable(error) or not exchange.chat.fallback:
                raise
            if next(next_places(gateway, exchange, tried), None) is None:
                raise _told(failures) from None
            if not isinstance(error, LeftAlone) and not gateway.retries.take(exchange.route.model):
                metrics.RETRIES.labels("no_budget").inc()
                raise _told(failures) from None
            exchange.attempt_at = None  # its time is over, once: the next attempt's has not begun
            await answer.give_up(error)
        if not await move(gateway, exchange, tried) and not await wait(gateway, exchange, tried):
            metrics.RETRIES.labels("no_room").inc()
            raise _told(failures)
        metrics.RETRIES.labels("sent").inc()


def is_retryable(error: UpstreamError) -> bool:
    """Whether another upstream may do better: not at what the client asked for, nor when its time is over."""
    return not isinstance(error, Rejected) and not (isinstance(error, TimedOut) and error.which == "total")


async def _attempt(gateway: Gateway, exchange: Exchange, answer: Answering) -> None:
    name, key = exchange.replica.name, exchange.replica.key
    leave = gateway.breakers.enter(key)
    if leave is None:
        raise LeftAlone("by its breaker", retry_after=gateway.breakers.wait(key))

    def answered() -> None:
        leave.answered()
        gateway.own_faults.answered(key, exchange.principal.tenant)
        gateway.placing.began(exchange)

    exchange.on_first_byte = answered
    try:
        await answer.attempt()
        leave.succeeded()
        gateway.outcomes.answered(name)
    except asyncio.CancelledError:
        error = _interruption(exchange)
        if isinstance(error, TimedOut):
            if not exchange.has_first_byte:
                leave.waited()
            elif error.which != "total":  # else it wrote all the while, for long
                leave.failed()
            gateway.outcomes.failed(name, error)
        if error is None or error is exchange.interruption:
            raise
        raise error from None
    except UpstreamError as error:
        if not (_may_be_own(error) and gateway.own_faults.is_own(key, exchange.principal.tenant)):
            _judge(exchange, leave, error)
            gateway.outcomes.failed(name, error)
        raise
    finally:
        exchange.on_first_byte = None
        leave.left()


def _interruption(exchange: Exchange) -> Exception | None:
    """Why the attempt was cancelled: the whole request is ended, or its time to the first byte is over."""
    expiry, exchange.expiry = exchange.expiry, None
    if exchange.interruption is not None:
        return exchange.interruption
    if expiry is None or exchange.task is None or exchange.task.uncancel() > 0:
        return None  # the server itself cancels us
    return expiry


def _may_be_own(error: UpstreamError) -> bool:
    """Whether the engine answered, and only this request may be what it fails at."""
    return type(error) is Failed and error.status == 500


def _judge(exchange: Exchange, leave: Pass, error: UpstreamError) -> None:
    """What a failure says of the upstream."""
    match error:
        case Rejected():
            leave.answered()
        case AccountRefused():
            leave.failed(pause=_ACCOUNT_SECONDS)
        case Busy(retry_after=float(seconds)) if seconds > 0:
            leave.failed(pause=seconds)
        case Busy() if not exchange.replica.upstream.protocol.is_hosted:
            leave.answered()  # a full engine is no failing one: its room is free again in an instant
        case _:
            leave.failed()


def _note(exchange: Exchange, error: UpstreamError) -> None:
    """For the record's label `attempts`: who failed, and how."""
    said = f"{exchange.replica.name}: {cause(error)}"
    before = exchange.event.labels.get("attempts")
    exchange.event.labels["attempts"] = (f"{before}; {said}" if before else said)[:1024]


def cause(error: UpstreamError) -> str:
    """Why an upstream failed, for the record's labels: what an operator looks for. Only words of our own."""
    status = f" (status {error.status})" if error.status is not None else ""
    return f"{type(error).__name__}: {error}{status}"


def _told(failures: list[UpstreamError]) -> UpstreamError:
    """What the client is told of several: when there is room again, if all were full; else the first that was not."""
    others = [error for error in failures if not isinstance(error, Busy)]
    if others:
        return others[0]
    waits = [error.retry_after for error in failures if isinstance(error, Busy) and error.retry_after is not None]
    return Busy("no room", status=failures[-1].status, retry_after=min(waits, default=None))
