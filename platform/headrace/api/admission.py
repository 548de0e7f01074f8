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
from routing.catalog import Replica, Route
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


def check_fields(chat: ChatRequest, route: Route, replica: Replica) -> None:
    """Refuse or drop what the route's engine does not take. Raises ApiError."""
    if chat.unknown and route.unknown_fields != "drop":
        name = chat.unknown[0]
        raise ApiError("unsupported_parameter", f"Unknown or unsupported parameter: '{name}'.", param=name)
    protocol = replica.upstream.protocol
    refused = "n" if chat.n > 1 and not protocol.many_choices else protocol.refused(chat.passed)
    if refused is not None:
        raise ApiError(
            "unsupported_parameter", f"The engine of this model does not support '{refused}'.", param=refused
        )


def output_bound(chat: ChatRequest, route: Route, principal: Principal, prompt: int) -> int:
    """The max_tokens of each choice: the request's, else the route's default, bounded by window and limits."""
    cap = principal.max_output_tokens
    if principal.max_prompt_tokens is not None and prompt > principal.max_prompt_tokens:
        raise ApiError(
            "request_too_large",
            f"The prompt is about {prompt} tokens; this key may send {principal.max_prompt_tokens}.",
            param="messages",
        )
    if chat.max_tokens is None:
        room = max(1, route.context_window - prompt)
        return min(value for value in (route.default_max_tokens, room, cap) if value is not None)
    if chat.max_tokens >= route.context_window:
        raise ApiError(
            "context_length_exceeded",
            f"max_tokens is {chat.max_tokens}; the model's context window is {route.context_window} tokens.",
            param="max_tokens",
        )
    if cap is not None and chat.max_tokens > cap:
        raise ApiError(
            "request_too_large", f"max_tokens is {chat.max_tokens}; this key may ask for {cap}.", param="max_tokens"
        )
    return chat.max_tokens


async def admit(gateway: Gateway, principal: Principal, chat: ChatRequest, labels: dict[str, str]) -> Exchange:
    """Take the request's worst case from every meter above its key, or raise ApiError having taken nothing."""
    route = find_route(gateway, principal, chat.model)
    prompt = gateway.estimator.prompt_tokens(chat.model, chat)
    choices = gateway.placing.choices(route, chat, principal.tenant, prompt)
    if not choices:
        raise ApiError("no_capacity", "No replica of this model is running.", retry_after=1)
    choice = choices[0]
    target, replica = choice.target, choice.replica
    check_fields(chat, route, replica)
    max_tokens = output_bound(chat, route, principal, prompt)
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
        target=target,
        replica=replica,
        taken=Taken(principal.meters, amounts),
        event=priced(event),
        quotes=quotes,
        prompt_estimate=prompt,
        max_tokens=max_tokens,
    )
    exchange.choice = choice
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
