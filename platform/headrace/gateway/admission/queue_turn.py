"""A request's turn while all replicas are busy: what it tells the fair queue, and the wait before its first attempt."""

import time
from collections.abc import Sequence

import redis

from headrace.gateway.admission.offer import Offer
from headrace.gateway.admission.places import barred
from headrace.gateway.errors import ApiError
from headrace.gateway.process import metrics
from headrace.gateway.state.request_state import RequestState
from headrace.gateway.web_process import Gateway
from routing.catalog import Replica
from routing.fairness.order import CLASSES, cost
from routing.placement import Place
from tenants.meters.holds import Gone
from tenants.meters.meter import room_key
from tenants.meters.queueing import EVICTED, Waiter

PRIORITY = b"x-headrace-priority"
_LEVEL_STEP = 20
# The part of the longest wait after which a request that is owed room has it kept from newcomers.
_PATIENCE = 0.5


def priority_of(own: str, wished: str) -> str:
    """The class of a request: its key's `own`, or the lower one its client wishes. Raises ApiError."""
    if not wished:
        return own
    if wished not in CLASSES:
        raise ApiError("invalid_request", f"{PRIORITY.decode()} is one of {', '.join(CLASSES)}.")
    return max(own, wished, key=CLASSES.index)


def level_of(priority: str) -> int:
    """The class as engines that order by priority take it: the higher goes first. SGLang lets one preempt another that
    is more than ten lower (--priority-scheduling-preemption-threshold)."""
    return _LEVEL_STEP * (len(CLASSES) - 1 - CLASSES.index(priority))


def waiter_of(gateway: Gateway, request: RequestState, found: list[Place], *, tried: Sequence[Replica] = ()) -> Waiter:
    """How it waits if no replica of `found` has room. tried: replicas that are offered no more."""
    want, who = request.choice.want, request.principal
    is_last_resort = bool(found) and not gateway.rooms.is_usable(found[0][0].replica)
    targets = (choice.target.name for choice, _ in found)
    return Waiter(
        tenant=who.tenant,
        priority=request.priority,
        cost=cost(want.prompt, want.output, who.weight),
        channel=gateway.queueing.channel,
        weight=who.weight,
        patience=round(request.route.queue_timeout * 1000 * _PATIENCE),
        most=request.route.queue_length,
        project=who.project,
        project_weight=who.project_weight,
        need=str(want.need(0)),
        lists=gateway.rooms.names(request.route.model, targets, is_last_resort=is_last_resort),
        barred=[room_key(name) for name in (*(replica.name for replica in tried), *barred(gateway, who, found))],
    )


async def wait_for_room(gateway: Gateway, request: RequestState, found: list[Place]) -> None:
    """Wait, no longer than the route allows, until a replica has room and it is the request's turn.

    found: the places it prefers.
    Raises ApiError when the time is over, or it had to make room in the queue. Whatever ends the wait, settling the
    request takes it out of the queue.
    """
    began, route = time.monotonic(), request.route
    before = request.event.queue_ms
    most = min(route.queue_timeout - before / 1000, request.admitted_at + route.total_timeout - began)
    offer = Offer(gateway, request, found)
    metrics.WAITING.labels(route.model).inc()
    try:
        key = await gateway.queueing.room(request.id, seconds=max(0.0, most), offer=offer)
    except (redis.RedisError, Gone):
        raise ApiError("redis_unavailable", "Limits cannot be checked right now.", retry_after=1) from None
    finally:
        metrics.WAITING.labels(route.model).dec()
        request.event.queue_ms = before + round((time.monotonic() - began) * 1000)
    if key is None:
        raise busy(request)
    if key == EVICTED:
        raise crowded_out(request)
    room, place = offer.at(key)
    request.taken.rooms, request.taken.room = [room], 0
    take_place(gateway, request, place)


def take_place(gateway: Gateway, request: RequestState, place: Place) -> None:
    """Have the request go to the place in which it was given room."""
    choice, fit = place
    if choice is not request.choice:
        max_tokens = min(fit.max_tokens, request.held_max_tokens)
        request.go_to(choice, prompt_estimate=fit.prompt, max_tokens=max_tokens)
    gateway.placement.took(request)


def busy(request: RequestState) -> ApiError:
    """What a client is told that cannot wait, or has waited long enough."""
    again = min(30.0, max(1.0, request.route.queue_timeout / 4))
    return ApiError("no_capacity", "All replicas of this model are busy.", retry_after=again)


def crowded_out(request: RequestState) -> ApiError:
    """What a client is told whose request waited, until another's had more right to its place."""
    again = min(30.0, max(1.0, request.route.queue_timeout / 4))
    return ApiError(
        "rate_limit_exceeded",
        f"The queue for '{request.operation.model}' is full, and this project or its tenant has more requests"
        " waiting than others: this one, the newest of them, made room for another's. Try again later, or send fewer"
        " at a time.",
        retry_after=again,
    )


def too_many(request: RequestState) -> ApiError:
    """What a client is told whose tenant has its part of the queue already."""
    return ApiError(
        "rate_limit_exceeded",
        f"The tenant has as many requests waiting for '{request.operation.model}' as may wait at a time.",
        retry_after=1,
    )
