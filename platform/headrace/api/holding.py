"""Taking a drafted request's worst case, and giving it back when it is not to run: whatever becomes of its client."""

import asyncio

import msgspec
import redis

from headrace.api.errors import ApiError
from headrace.api.exchange import Exchange
from headrace.api.gateway import Gateway
from headrace.api.places import Place
from tenants.meters import holds
from tenants.meters.holds import Level, NotHeld

_encode = msgspec.json.encode


async def hold(gateway: Gateway, exchange: Exchange, found: list[Place]) -> list[Level]:
    """Take all of it, and have the exchange go to the first of `found` that has room.

    Raises NotHeld, or ApiError when Redis does not answer or no replica has room.
    """
    taking = asyncio.create_task(_take(gateway, exchange, found))
    try:
        return await asyncio.shield(taking)
    except asyncio.CancelledError:
        # The client left while Redis decides. What was taken has to come back, so the answer is waited for.
        gateway.background(_give_back(gateway, exchange, taking))
        raise


async def count_prompt(gateway: Gateway, exchange: Exchange, *, is_held: bool) -> int | None:
    """The prompt's tokens by the engine's tokenizer; None where it cannot say."""
    if exchange.chat.content.modalities != {"text"}:
        return None
    try:
        return await gateway.client.count_prompt(exchange.replica.upstream, exchange.chat.upstream_fields())
    except asyncio.CancelledError:
        if is_held:
            gateway.background(gateway.settler.finish(exchange, "cancelled"))
        raise


async def withdraw(gateway: Gateway, exchange: Exchange) -> None:
    """Undo the hold as if it had never been asked for."""
    gateway.placing.ended(exchange)
    await asyncio.shield(gateway.background(_withdraw(gateway, exchange.id)))


async def _withdraw(gateway: Gateway, request_id: str) -> None:
    try:
        await holds.withdraw(gateway.redis, [request_id])
    except redis.RedisError:
        gateway.withdrawals.add(request_id)


async def _give_back(gateway: Gateway, exchange: Exchange, taking: "asyncio.Task[list[Level]]") -> None:
    try:
        await taking
    except (ApiError, NotHeld):
        return  # refused, or withdrawn: there is no hold
    await gateway.settler.finish(exchange, "cancelled")


async def _take(gateway: Gateway, exchange: Exchange, found: list[Place]) -> list[Level]:
    try:
        levels = await holds.admit(
            gateway.redis,
            request_id=exchange.id,
            lease_ms=gateway.lease_ms,
            taken=exchange.taken,
            record=_encode(exchange.event),
        )
    except holds.NoRoom:
        raise ApiError("no_capacity", "All replicas of this model are busy.", retry_after=1) from None
    except redis.RedisError:
        gateway.withdrawals.add(exchange.id)
        raise ApiError("redis_unavailable", "Limits cannot be checked right now.", retry_after=1) from None
    if exchange.taken.room is not None:
        choice, fit = found[exchange.taken.room]
        if choice is not exchange.choice:
            max_tokens = min(fit.max_tokens, exchange.held_max_tokens)
            exchange.go_to(choice, prompt_estimate=fit.prompt, max_tokens=max_tokens)
        gateway.placing.took(exchange)
    return levels
