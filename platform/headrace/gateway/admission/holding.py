"""Taking a drafted request's worst case, and giving it back when it is not to run: whatever becomes of its client."""

import asyncio

import msgspec
import redis

from headrace.gateway.admission.places import PREFERRED
from headrace.gateway.admission.queue_turn import busy, take_place, too_many, waiter_of
from headrace.gateway.errors import ApiError, lease_lost
from headrace.gateway.operations.operation import Operation
from headrace.gateway.state.request_state import RequestState
from headrace.gateway.web_process import Gateway
from routing.catalog import Replica
from routing.placement import Place
from tenants.meters import holds
from tenants.meters.holds import Level, NotHeld

_encode = msgspec.json.encode


async def hold(gateway: Gateway, request: RequestState, found: list[Place]) -> list[Level]:
    """Take all of it, and have the request go to the first of `found` that has room.

    Raises NotHeld, or ApiError when Redis does not answer or no replica has room.
    """
    taking = asyncio.create_task(_take(gateway, request, found))
    try:
        return await asyncio.shield(taking)
    except asyncio.CancelledError:
        # The client left while Redis decides. What was taken has to come back, so the answer is waited for.
        gateway.background(_give_back(gateway, request, taking))
        raise


async def count_prompt(gateway: Gateway, replica: Replica, operation: Operation) -> int | None:
    """The prompt's tokens by the engine's tokenizer; None where it cannot say."""
    if not operation.is_text:
        return None
    return await gateway.client.count_prompt(replica.upstream, operation.upstream_fields())


async def _give_back(gateway: Gateway, request: RequestState, taking: "asyncio.Task[list[Level]]") -> None:
    try:
        await taking
    except (ApiError, NotHeld):
        return  # refused, or withdrawn: there is no hold
    await gateway.settler.finish(request, "cancelled")


async def _take(gateway: Gateway, request: RequestState, found: list[Place]) -> list[Level]:
    if gateway.headroom.is_short:
        raise ApiError("redis_unavailable", "No memory is left to keep limits in. Try again later.", retry_after=5)
    waiter = waiter_of(gateway, request, found)
    if waiter.most:  # it may be told of room before it is told that it waits
        gateway.queueing.expect(request.id, request.target.name)
    is_waiting = False
    try:
        levels = await holds.admit(
            gateway.redis,
            request_id=request.id,
            lease_ms=gateway.lease_ms,
            taken=request.taken,
            record=_encode(request.event),
            waiter=waiter,
        )
        is_waiting = request.taken.room is None and bool(request.taken.rooms)
    except holds.NoRoom:
        raise busy(request) from None
    except holds.NoTurn:
        raise too_many(request) from None
    except holds.Ended:  # admitted, and reaped before this process heard of it and asked again
        raise lease_lost() from None
    except redis.RedisError:
        gateway.withdrawals.add(request.id)
        raise ApiError("redis_unavailable", "Limits cannot be checked right now.", retry_after=1) from None
    finally:
        if not is_waiting:
            gateway.queueing.forget(request.id)
    if is_waiting:
        request.waits_for, request.taken.rooms = found[:PREFERRED], []
    elif request.taken.room is not None:
        take_place(gateway, request, found[request.taken.room])
    return levels
