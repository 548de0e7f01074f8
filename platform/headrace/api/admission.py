"""From a checked chat to a held request: which route, how large at worst, and one atomic take from all its meters."""

import asyncio
import time

import msgspec
import redis

from billing.usage import UsageEvent, iso, new_request_id, priced
from headrace.api.charges import quotes_of, worst_cost
from headrace.api.chat_request import ChatRequest
from headrace.api.errors import ApiError
from headrace.api.exchange import Exchange
from headrace.api.gateway import Gateway
from headrace.api.places import check_unknown, first_place
from routing.catalog import Route
from tenants.keyring import Principal
from tenants.meters import holds
from tenants.meters.holds import Level, Taken
from tenants.meters.meter import CONCURRENCY, COST, INPUT_TOKENS, OUTPUT_TOKENS, REQUESTS, Meter

_encode = msgspec.json.encode
_LIMIT_NAMES = {
    REQUESTS: "requests per minute",
    INPUT_TOKENS: "input tokens per minute",
    OUTPUT_TOKENS: "output tokens per minute",
    CONCURRENCY: "concurrent requests",
}


def find_route(gateway: Gateway, principal: Principal, model: str) -> Route:
    """The route of `model`. One a key may not call looks as if it did not exist. Raises ApiError."""
    route = gateway.snapshot.catalog.routes.get(model)
    if route is None or not principal.may_call(model):
        raise ApiError(
            "model_not_found", f"The model '{model}' does not exist or this key may not call it.", param="model"
        )
    return route


async def admit(gateway: Gateway, principal: Principal, chat: ChatRequest, labels: dict[str, str]) -> Exchange:
    """Take the request's worst case from every meter above its key, or raise ApiError having taken nothing."""
    route = find_route(gateway, principal, chat.model)
    check_unknown(chat, route)
    choice, fit = first_place(gateway, principal, chat, route)
    target, replica = choice.target, choice.replica
    prompt, max_tokens = fit.prompt, fit.max_tokens
    now_ms = int(time.time() * 1000)
    request_id = new_request_id(now_ms)
    quotes = quotes_of(gateway.snapshot.prices, principal, route, now_ms)
    quote = quotes[target.name]
    amounts = {
        REQUESTS: 1,
        INPUT_TOKENS: prompt,
        OUTPUT_TOKENS: chat.n * max_tokens,
        CONCURRENCY: 1,
        COST: worst_cost(quotes, prompt, chat.n * max_tokens),
    }
    event = UsageEvent(
        request_id=str(request_id),
        tenant=principal.tenant,
        project=principal.project,
        key=principal.key,
        model=chat.model,
        target=target.name,
        replica=replica.name,
        currency=principal.currency,
        price=quote.version if quote else None,
        rates=quote.rates if quote else None,
        admitted_at=iso(now_ms),
        labels=chat.labels | labels,
    )
    exchange = Exchange(
        request_id=request_id,
        chat=chat,
        principal=principal,
        route=route,
        choice=choice,
        taken=Taken(principal.meters, amounts),
        event=priced(event),
        quotes=quotes,
        prompt_estimate=prompt,
        max_tokens=max_tokens,
    )
    taking = asyncio.create_task(_take(gateway, exchange))
    try:
        exchange.levels = await asyncio.shield(taking)
    except asyncio.CancelledError:
        # The client left while Redis decides. What was taken has to come back, so the answer is waited for.
        gateway.background(_give_back(gateway, exchange, taking))
        raise
    return exchange


async def _give_back(gateway: Gateway, exchange: Exchange, taking: "asyncio.Task[list[Level]]") -> None:
    try:
        await taking
    except ApiError:
        return  # refused, or withdrawn: there is no hold
    await gateway.settler.finish(exchange, "cancelled")


async def _take(gateway: Gateway, exchange: Exchange) -> list[Level]:
    try:
        return await holds.admit(
            gateway.redis,
            request_id=exchange.id,
            lease_ms=gateway.lease_ms,
            taken=exchange.taken,
            record=_encode(exchange.event),
        )
    except holds.Refused as refused:
        raise _refusal(refused.meter, refused.wait_ms) from None
    except holds.TooLarge as large:
        raise ApiError(
            "request_too_large",
            f"This request takes {large.amount} of the {large.meter.scope}'s {_LIMIT_NAMES[large.meter.measure]}"
            f" and could never be admitted: the limit is {large.meter.limit}.",
        ) from None
    except redis.RedisError:
        gateway.withdrawals.add(exchange.id)
        raise ApiError("redis_unavailable", "Limits cannot be checked right now.", retry_after=1) from None


def _refusal(meter: Meter, wait_ms: int) -> ApiError:
    return ApiError(
        "rate_limit_exceeded",
        f"The {meter.scope}'s limit of {meter.limit} {_LIMIT_NAMES[meter.measure]} is reached.",
        retry_after=wait_ms / 1000,
    )
