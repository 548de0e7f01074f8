"""The attempts of one request: until the first byte, what one upstream fails at may be asked of the next.

The next replica of the target, then the next target of the route; each gets the request once, within its tenant's
retry budget and past no breaker that is open. What the client caused is not asked again, and after the first byte
nothing is: the answer is one upstream's or none. An attempt begins after the one before it is closed, under a new name,
and once the hold has moved to it. Where all others are full it waits its turn, as one that just came, if its route lets
it.

A request at which engines break is a query of death: after the second that broke nobody is asked (quarantine.py).
"""

import asyncio
import logging
from typing import Protocol

from engines.errors import Busy, Rejected, Stale, TimedOut, UpstreamError
from engines.reasons import fit_to_tell
from headrace.gateway.admission.queue_turn import wait_for_room
from headrace.gateway.process import metrics
from headrace.gateway.process.quarantine import Breaks
from headrace.gateway.relay.media import judge_media
from headrace.gateway.relay.rerouting import move, next_places, wait
from headrace.gateway.relay.upstream_call import may_be_left_out
from headrace.gateway.relay.upstream_faults import blame
from headrace.gateway.state.request_state import RequestState
from headrace.gateway.web_process import Gateway
from routing.catalog import Replica

log = logging.getLogger("headrace.attempts")

# So many attempts may get nothing from our own engines: a request that hangs one would hang them all.
_MOST_HUNG = 2


class LeftAlone(Busy):
    """Nobody was asked: the breaker opened, or another request began to try, since the replica was chosen."""


class Answering(Protocol):
    """An answer, streamed or whole, that can be attempted again until its first byte."""

    async def attempt(self) -> None:
        """Get the answer from the request's replica. Raises UpstreamError."""

    async def give_up(self, error: UpstreamError) -> None:
        """End an attempt that failed by `error`; on return it is closed."""


async def answer_by_any(gateway: Gateway, request: RequestState, answer: Answering) -> None:
    """Have the answer given by the request's replica, once it has room, or, before the first byte, by another.

    Raises UpstreamError: the most telling of the failures; ApiError where the request cannot go on.
    """
    if request.waits_for:
        await wait_for_room(gateway, request, request.waits_for)
    gateway.retries.note_request(request.route.model, request.principal.tenant)
    failures: list[UpstreamError] = []
    tried: list[Replica] = []
    first = request.target
    breaks = Breaks(gateway.quarantine, request)
    hung = late = 0  # attempts that got nothing from engines which answered others; from any
    while True:
        tried.append(request.replica)
        try:
            await _attempt(gateway, request, answer)
            gateway.quarantine.note_answer(request)
            return
        except UpstreamError as error:
            is_doubtful = isinstance(error, Stale) and not breaks.is_doubt_used
            if is_doubtful and not _may_ask_sibling(gateway, request, tried):
                await breaks.note(error)
                continue  # once more, on a fresh connection
            _note(request, error)
            if refused := may_be_left_out(gateway, request, error):
                request.left_out |= refused
                await answer.give_up(error)
                continue  # once more, without what only we added
            is_for_all = isinstance(error, Rejected) and error.kind != "media"
            if is_for_all and failures and request.target != first:
                raise _told(failures) from None  # what another target refuses, the first might have taken
            failures.append(error)
            if not is_for_all and isinstance(error, Rejected):
                tried += [each for each in request.target.replicas if each not in tried]  # they serve the same model
            is_late = isinstance(error, TimedOut) and error.which == "first_byte"
            hung += is_late and gateway.own_faults.answers(request.replica.key)
            late += is_late
            if late >= _MOST_HUNG:
                tried += [each for each in _own_engines(request) if each not in tried]
            if await breaks.note(error) or hung >= _MOST_HUNG:
                raise _told(failures) from None
            if request.has_first_byte or not is_retryable(error) or not request.operation.fallback:
                raise
            if next(next_places(gateway, request, tried), None) is None:
                raise _told(failures) from None
            is_paid = is_doubtful or isinstance(error, LeftAlone)
            if not is_paid and not gateway.retries.take(request.route.model, request.principal.tenant):
                metrics.RETRIES.labels("no_budget").inc()
                raise _told(failures) from None
            request.attempt_at = None  # its time is over, once: the next attempt's has not begun
            await answer.give_up(error)
        if not await move(gateway, request, tried) and not await wait(gateway, request, tried):
            metrics.RETRIES.labels("no_room").inc()
            raise _told(failures)
        metrics.RETRIES.labels("sent").inc()


def _may_ask_sibling(gateway: Gateway, request: RequestState, tried: list[Replica]) -> bool:
    """Whether a request whose connection was lost goes to another replica of its target; if so, the retry is counted.

    The connection may have been stale, and the engine well; or the engine may have broken at the request: asked again
    it would break again.
    """
    if not request.operation.fallback:
        return False
    found = next(next_places(gateway, request, tried), None)
    is_sibling = found is not None and found[0].target.name == request.target.name
    return is_sibling and gateway.retries.take(request.route.model, request.principal.tenant)


def _own_engines(request: RequestState) -> list[Replica]:
    """The replicas that a request may hang: a provider's servers are its own business."""
    replicas = [each for target in request.route.targets for each in target.replicas]
    return [each for each in replicas if not each.upstream.protocol.is_hosted]


def is_retryable(error: UpstreamError) -> bool:
    """Whether another upstream may do better: not at what the client asked for, nor when its time is over."""
    if isinstance(error, Rejected):
        return error.kind == "media"  # another target's model may take them
    return not (isinstance(error, TimedOut) and error.which == "total")


async def _attempt(gateway: Gateway, request: RequestState, answer: Answering) -> None:
    name, key, tenant = request.replica.name, request.replica.key, request.principal.tenant
    leave = gateway.breakers.enter(key, tenant)
    if leave is None:
        raise LeftAlone("by its breaker", retry_after=gateway.breakers.wait(key, tenant))
    gateway.silences.asked(key, tenant)
    is_begun = False

    def answered() -> None:
        nonlocal is_begun
        is_begun = True
        leave.answered()
        gateway.silences.answered(key, tenant)
        if request.left_out:
            gateway.unwanted.learn(key, request.left_out)
        elif request.streams_upstream:
            gateway.unwanted.note_accepted(key)
        gateway.own_faults.answered(key, tenant)
        gateway.placement.began(request)

    request.on_first_byte = answered
    try:
        await answer.attempt()
        leave.succeeded()
        gateway.own_faults.completed(key, tenant)
        gateway.outcomes.answered(name)
    except asyncio.CancelledError:
        error = _interruption(request)
        if isinstance(error, TimedOut):
            blame(gateway, request, leave, error, is_begun=is_begun)
        if error is None or error is request.interruption:
            raise
        raise error from None
    except UpstreamError as caught:
        failure = judge_media(request, caught)
        blame(gateway, request, leave, failure, is_begun=is_begun)
        raise failure from caught.__cause__
    finally:
        request.on_first_byte = None
        leave.left()


def _interruption(request: RequestState) -> Exception | None:
    """Why the attempt was cancelled: the whole request is ended, or its time to the first byte is over."""
    expiry, request.expiry = request.expiry, None
    if request.interruption is not None:
        return request.interruption
    if expiry is None or request.task is None or request.task.uncancel() > 0:
        return None  # the server itself cancels us
    return expiry


def _note(request: RequestState, error: UpstreamError) -> None:
    """For the record's labels: `attempts`, who failed and how; `reason`, the last engine's own words as far as they are
    fit to be told, which the log has too."""
    renamed = {request.replica.upstream.model: request.operation.model}
    if error.reason and (told := fit_to_tell(error.reason, renamed=renamed)):
        error.told = request.event.labels["reason"] = told
        log.info("%s: %s says: %s", request.id, request.replica.name, told)
    said = f"{request.replica.name}: {cause(error)}"
    before = request.event.labels.get("attempts")
    request.event.labels["attempts"] = (f"{before}; {said}" if before else said)[:1024]


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
