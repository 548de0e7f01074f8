"""Copies of requests for shadow targets: asked like any other, answered to nobody.

A copy is a request of its own, with an id, a record (kind `shadow`, cost 0) and room at its replica, but no limit and
no budget of its tenant, and no place in the queue. It begins once the real request is admitted, ends at the latest when
its client leaves, and goes its own way otherwise: whatever becomes of it, the real one neither waits nor fails.
"""

import asyncio
import logging
import time
from decimal import Decimal
from typing import cast

import msgspec

from billing.price_book import Quote
from billing.pricing import Rates
from billing.usage import SHADOW, UsageEvent, iso, new_request_id, priced
from engines.errors import Stale
from headrace.gateway.admission.holding import hold
from headrace.gateway.admission.places import fitting
from headrace.gateway.errors import ApiError
from headrace.gateway.process import metrics
from headrace.gateway.relay.consumer import StreamingConsumer
from headrace.gateway.relay.whole_answer import WholeAnswer
from headrace.gateway.state.request_state import ClientLeft, RequestState
from headrace.gateway.web_process import Gateway
from routing.catalog import Target
from routing.fairness.order import CLASSES
from routing.placement import Place
from tenants.meters.holds import NotHeld, Taken

log = logging.getLogger("headrace.shadow")

# So many copies may run at once in a process: a slow shadow must not gather those of hours.
_MOST = 64
_ZERO = Decimal(0)
_FREE = Quote("", Rates(_ZERO, _ZERO, _ZERO))


def copy_to_shadows(gateway: Gateway, request: RequestState) -> None:
    """Begin the copies that the route wants of an admitted request."""
    if gateway.is_stopping or all(target.shadow is None for target in request.route.targets):
        return
    for target in gateway.placement.selection.match(request.route, request.choice.want).shadows:
        if gateway.shadows >= _MOST:
            metrics.SHADOWS.labels("left_out").inc()
        else:
            gateway.shadows += 1
            gateway.background(_copied(gateway, request, target))


async def _copied(gateway: Gateway, request: RequestState, target: Target) -> None:
    try:
        metrics.SHADOWS.labels(await _copy(gateway, request, target)).inc()
    except (ApiError, NotHeld):
        metrics.SHADOWS.labels("left_out").inc()  # it does not fit there, or there is no room
    finally:
        gateway.shadows -= 1


async def _copy(gateway: Gateway, request: RequestState, target: Target) -> str:
    """Run the copy to its end, and settle it; how it ended. Raises ApiError, NotHeld: it never began."""
    found = _places(gateway, request, target)
    if not found:
        return "left_out"
    copy = _drafted(gateway, request, found)
    copy.levels = await hold(gateway, copy, found)
    copy.task = asyncio.current_task()
    gateway.pulse.add(copy)
    request.copies.append(copy)
    if isinstance(request.interruption, ClientLeft):
        copy.interrupt(request.interruption)
    # Its answer is read and dropped: no consumer is ever written to.
    answer = WholeAnswer(cast(StreamingConsumer, None), gateway, copy)
    try:
        try:
            await answer.attempt()
        except Stale:  # no failure of the replica: once more, on a fresh connection
            await answer.attempt()
    except BaseException as error:
        reason = copy.interruption or copy.expiry
        status = "cancelled" if isinstance(reason or error, asyncio.CancelledError | ClientLeft) else "error"
        copy.event.labels["error"] = type(reason or error).__name__
        await gateway.settler.finish(copy, status, before=answer.hang_up())
        if isinstance(error, asyncio.CancelledError) and reason is None:
            raise
        return status
    finally:
        request.copies.remove(copy)
    await gateway.settler.finish(copy, "ok")
    return "ok"


def _places(gateway: Gateway, request: RequestState, target: Target) -> list[Place]:
    fit = fitting(gateway, request.principal, request.operation, request.route, target) if target.replicas else None
    tenant = request.principal.tenant
    besides = frozenset(one.key for one in target.replicas if gateway.breakers.wait(one.key, tenant) > 0)
    choices = gateway.placement.selection.of_target(request.route, target, request.choice.want, besides=besides)
    return [(choice, fit) for choice in choices if fit is not None]


def _drafted(gateway: Gateway, request: RequestState, found: list[Place]) -> RequestState:
    choice, fit = found[0]
    now_ms = int(time.time() * 1000)
    request_id = new_request_id(now_ms)
    event = UsageEvent(
        request_id=str(request_id),
        tenant=request.event.tenant,
        project=request.event.project,
        key=request.event.key,
        model=request.event.model,
        target=choice.target.name,
        replica=choice.replica.name,
        kind=SHADOW,
        currency=request.event.currency,
        rates=_FREE.rates,
        admitted_at=iso(now_ms),
        labels={"shadow_of": request.id},
    )
    return RequestState(
        request_id=request_id,
        operation=msgspec.structs.replace(request.operation, stream=False, include_usage=False),
        principal=request.principal,
        # Where there is no room for it, or somebody waits, there is no copy.
        route=msgspec.structs.replace(request.route, queue_length=0),
        priority=CLASSES[-1],
        choice=choice,
        taken=Taken([], {}, rooms=gateway.placement.rooms(one for one, _ in found)),
        event=priced(event),
        quotes={choice.target.name: _FREE},
        prompt_estimate=fit.prompt,
        held_prompt=fit.prompt,
        most_prompt=max(fit.prompt, request.route.context_window),
        max_tokens=fit.max_tokens,
    )
