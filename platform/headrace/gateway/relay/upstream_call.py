"""Opening an upstream, and hanging up on it."""

import asyncio
import secrets

import msgspec

from billing.usage import SHADOW
from engines.additions import leave_out, refused_additions
from engines.answer import Answer
from engines.errors import BadAnswer, Stale, TimedOut, UpstreamError
from engines.protocols import Attempt, Upstream
from engines.refusals import told_error
from headrace.gateway.admission.queue_turn import level_of
from headrace.gateway.process import metrics
from headrace.gateway.state.request_state import RequestState
from headrace.gateway.web_process import Gateway

# Engines that order by priority take the highest first; nobody waits for a copy.
_LOWEST = -1000
_encode = msgspec.json.encode
# How long an aborted engine may take to end its answer: SGLang takes about 0.3 s.
_STOP_SECONDS = 0.5
# What may still be in the buffers between us, of an answer nobody reads.
_STOP_BYTES = 256 * 1024
_ERROR_BYTES = 64 * 1024  # an error that is larger is none that we know


async def open_upstream(gateway: Gateway, request: RequestState) -> Answer:
    """Send the operation to the request's replica, under a new name. Raises engines.errors.UpstreamError."""
    gateway.placement.sent(request)
    return await _send(gateway, request)


def may_be_left_out(gateway: Gateway, request: RequestState, error: UpstreamError) -> frozenset[str]:
    """Those of our own fields in the failed attempt which its upstream may refuse, and which were not left out yet."""
    if request.attempt is None or request.has_first_byte:
        return frozenset()
    upstream = request.replica.upstream
    body = upstream.protocol.body(upstream, {}, request.attempt)
    left_out = gateway.unwanted.of(request.replica.key) | request.left_out
    leave_out(body, left_out)
    may_guess = not gateway.unwanted.accepts(request.replica.key)
    return refused_additions(error, body, may_guess=may_guess) - left_out


async def no_stream(answer: Answer) -> UpstreamError:
    """What a 200 that is no stream means: the error that it tells, if it does."""
    return told_error(await answer.head(_ERROR_BYTES)) or BadAnswer("not an event stream")


async def _send(gateway: Gateway, request: RequestState) -> Answer:
    upstream = request.replica.upstream
    request.attempt = Attempt(
        # Engines match aborts by prefix: names of one length, random and never the client's, cannot hit each other.
        rid=secrets.token_hex(16),
        stream=request.streams_upstream,
        n=request.operation.n,
        max_tokens=request.max_tokens,
        tenant=request.principal.tenant,
        priority=_LOWEST if request.event.kind == SHADOW else level_of(request.priority),
        salt=None if request.route.cache_scope == "shared" else request.principal.tenant,
    )
    body = upstream.protocol.body(upstream, request.operation.upstream_fields(), request.attempt)
    if left_out := gateway.unwanted.of(request.replica.key) | request.left_out:
        leave_out(body, left_out)
    headers = upstream.protocol.headers(request.attempt)
    request.start_attempt()
    return await gateway.client.chat(
        upstream,
        _encode(body),
        connect_timeout=request.route.connect_timeout,
        headers=headers,
        connected=request.attempt.went_out,
    )


async def see_out(gateway: Gateway, upstream: Upstream, attempt: Attempt, answer: Answer | None) -> None:
    """Have the engine end a streamed attempt, and close its connection.

    An engine that is aborted by name is given the time to end the answer by itself: so one that took the word and works
    on is found out, and counted. Engines forget the name of a request whose connection is gone: the word goes first.
    An abort by name does not reach the copies of n > 1: those end with the connection.
    """
    aborting = gateway.background(abort(gateway, upstream, attempt))
    if answer is not None:
        try:
            is_named = attempt.n == 1 and is_abortable(upstream, attempt)
            if is_named and not await answer.drained(_STOP_SECONDS, _STOP_BYTES):
                metrics.ABORTS.labels("ignored").inc()
        finally:
            await answer.close()
    await asyncio.wait({aborting}, timeout=_STOP_SECONDS)  # one that does not even take the word is not waited for


def is_abortable(upstream: Upstream, attempt: Attempt) -> bool:
    """Whether the engine takes the word of a request that it shall end it."""
    return upstream.protocol.abort_request(upstream, attempt.rid) is not None


async def abort(gateway: Gateway, upstream: Upstream, attempt: Attempt) -> bool:
    """Tell the engine to end the attempt, where it takes that word; whether it did."""
    if not is_abortable(upstream, attempt):
        return False
    taken = await gateway.client.abort(upstream, attempt.rid)
    metrics.ABORTS.labels("taken" if taken else "failed").inc()
    return taken


def may_run_on(error: UpstreamError) -> bool:
    """Whether an engine may still be working on an attempt that failed so. One that refused it, or never had it, is
    not."""
    if isinstance(error, Stale):
        return False
    return error.status in {None, 200} and not (isinstance(error, TimedOut) and error.which == "connect")
