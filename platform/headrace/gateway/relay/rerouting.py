"""Going elsewhere: where a failed request's next attempt may be, and its hold's way there, at once or by the queue."""

import asyncio
from collections.abc import Iterator

import msgspec
import redis

from headrace.gateway.admission.places import PREFERRED, places
from headrace.gateway.admission.queue_turn import wait_for_room, waiter_of
from headrace.gateway.errors import ApiError, lease_lost
from headrace.gateway.state.request_state import RequestState
from headrace.gateway.web_process import Gateway
from routing.catalog import Replica
from routing.placement import Fit, Place
from routing.selection import Choice
from tenants.meters import holds
from tenants.meters.queueing import Waiter

_encode = msgspec.json.encode
_FULL_ASKED = 4


def next_places(gateway: Gateway, request: RequestState, tried: list[Replica]) -> Iterator[Place]:
    """Where it may go next: at other targets with what the operation is there, and within what was held for it."""
    found = places(
        gateway,
        request.principal,
        request.operation,
        request.route,
        request.choice.want,
        tried=tried,
        first=request.target,
    )
    for choice, fit in found:
        yield choice, Fit(fit.prompt, min(fit.max_tokens, request.held_max_tokens))


async def move(gateway: Gateway, request: RequestState, tried: list[Replica]) -> bool:
    """Have the hold and the request go to the next place that takes them; False where none does. Raises ApiError."""
    found = list(next_places(gateway, request, tried))
    likely = [place for place in found if place[0].candidate.has_room]
    # Each is a question to Redis: of those that look full only a few are asked.
    for choice, fit in likely + [place for place in found if not place[0].candidate.has_room][:_FULL_ASKED]:
        # Not to be cut off halfway: whoever settles has to know whether it is done.
        said = await asyncio.shield(gateway.background(_move_hold(gateway, request, choice)))
        if _is_moved(said):
            gateway.placement.ended(request)
            request.step = request.moves
            request.go_to(choice, prompt_estimate=fit.prompt, max_tokens=fit.max_tokens)
            gateway.placement.took(request)
            return True
    return False


async def _move_hold(gateway: Gateway, request: RequestState, choice: Choice) -> str:
    request.moves += 1
    record, progress = request.record_at(choice)
    taken = msgspec.structs.replace(request.taken, rooms=gateway.placement.rooms([choice]), room=0)
    try:
        await holds.move(
            gateway.redis,
            request_id=request.id,
            step=request.moves,
            taken=taken,
            record=_encode(record),
            progress=_encode(progress),
            priority=request.priority,
        )
    except holds.Gone:
        return "gone"
    except holds.NotHeld:
        return "full"
    except redis.RedisError:
        return "away"
    request.taken = taken
    return "moved"


async def wait(gateway: Gateway, request: RequestState, tried: list[Replica]) -> bool:
    """Have the request wait its turn for another place, all of which are full; False where it may not. Raises
    ApiError."""
    found = list(next_places(gateway, request, tried))
    waiter = waiter_of(gateway, request, found, tried=tried)
    if not found or not waiter.most:
        return False
    gateway.queueing.expect(request.id, found[0][0].target.name)
    said = await asyncio.shield(gateway.background(_rejoin(gateway, request, found, waiter)))
    if said != "waits":
        gateway.queueing.forget(request.id)
        return _is_moved(said)
    gateway.placement.ended(request)
    request.step = request.moves
    request.attempt_at = None  # nobody is late: nobody was asked
    await wait_for_room(gateway, request, found[:PREFERRED])
    return True


async def _rejoin(gateway: Gateway, request: RequestState, found: list[Place], waiter: Waiter) -> str:
    request.moves += 1
    record, progress = request.record_at(found[0][0])
    rooms = gateway.placement.rooms(choice for choice, _ in found)
    taken = msgspec.structs.replace(request.taken, rooms=rooms, room=None)
    try:
        await holds.rejoin(
            gateway.redis,
            request_id=request.id,
            step=request.moves,
            taken=taken,
            record=_encode(record),
            progress=_encode(progress),
            waiter=waiter,
        )
    except holds.Gone:
        return "gone"
    except holds.NoRoom:
        return "full"
    except redis.RedisError:
        return "away"
    request.taken = msgspec.structs.replace(taken, rooms=[])
    return "waits"


def _is_moved(said: str) -> bool:
    """Whether the hold is at its next place. Raises ApiError where the request cannot go on."""
    if said == "gone":
        raise lease_lost()
    if said == "away":
        raise ApiError("redis_unavailable", "Limits cannot be checked right now.", retry_after=1)
    return said == "moved"
