"""From a checked operation to a held request: its route, its size at worst, and one atomic take from all its meters."""

import time

from billing.usage import UsageEvent, iso, new_request_id, priced
from headrace.gateway.admission.holding import count_prompt, hold
from headrace.gateway.admission.places import first_places
from headrace.gateway.admission.ranking import check_unknown, find_route
from headrace.gateway.admission.rejections import largest_output, no_price, refusal
from headrace.gateway.operations.operation import Operation
from headrace.gateway.state.charges import quotes_of, worst_cost
from headrace.gateway.state.placement_request import caps_of
from headrace.gateway.state.request_state import RequestState
from headrace.gateway.web_process import Gateway
from routing.catalog import Route
from routing.placement import Fit, Place, default_output
from tenants.keyring import Principal
from tenants.meters import counters
from tenants.meters.holds import Exhausted, Held, NotHeld, Taken, TooLarge
from tenants.meters.meter import CONCURRENCY, COST, INPUT_TOKENS, OUTPUT_TOKENS, REQUESTS

# The most that a meter of money holds; dearer requests fit no budget either.
_DEAREST = counters.MOST
# Tokens of the window that are left over: some engines want one, and count those that begin an answer.
_SPARE = 8
# Of a budget that has less left for it than so many tokens, a default is not cut to what fits: nobody wants an answer
# that breaks off in its first sentence.
_LEAST_DEFAULT = 16
# A count of the prompt, and what a budget or two have left, each once.
_MOST_TRIES = 4


async def admit(
    gateway: Gateway, principal: Principal, operation: Operation, *, labels: dict[str, str], priority: str
) -> RequestState:
    """Take the request's worst case from every meter above its key, or raise ApiError having taken nothing.

    From a hard budget its prompt takes the most tokens that it can be, so that no number of them passes it. Where that
    does not fit, or the estimate is more than a limit could ever admit, the engine is asked to count it. A max_tokens
    that no client named is cut to what a budget has left.
    """
    route = find_route(gateway.snapshot.catalog, principal, operation.model)
    principal = principal.for_model(operation.model)
    check_unknown(operation, route)
    gateway.quarantine.require_allowed(principal, operation)
    found = first_places(gateway, principal, operation, route)
    found = await _near_the_end(gateway, principal, operation, route, found)
    counted: int | None = None
    for tries in range(1, _MOST_TRIES + 1):
        request = _draft(gateway, principal, operation, labels, priority, route, found, is_counted=counted is not None)
        request.counted_prompt = counted
        try:
            request.levels = await hold(gateway, request, found)
            return request
        except NotHeld as said:
            if counted is None and tries < _MOST_TRIES and _may_fit(request, said):
                counted = await count_prompt(gateway, request.replica, operation)
                if counted is not None:
                    target = request.choice.target
                    found = [(one, Fit(counted, fit.max_tokens)) for one, fit in found if one.target is target]
                    continue
            most = _fitting_default(request, said)
            if most is None or tries == _MOST_TRIES:
                raise refusal(request, said) from None
            found = [(one, Fit(fit.prompt, min(fit.max_tokens, most))) for one, fit in found]
    raise AssertionError("the last try returns or raises")


async def _near_the_end(
    gateway: Gateway, principal: Principal, operation: Operation, route: Route, found: list[Place]
) -> list[Place]:
    """`found`; where a prompt may leave less of the window than our own max_tokens, with what it does leave, counted.

    A client that named none is not to be refused for ours, nor cut short for an estimate. Of a small prompt the
    estimate's error costs so little that no engine is asked.
    """
    choice, fit = found[0]
    window, default = choice.target.window(route), default_output(caps_of(principal), route, operation.n)
    if operation.max_tokens is not None or fit.max_tokens == default or fit.prompt < window // 3:
        return found
    counted = await count_prompt(gateway, choice.replica, operation)
    if counted is None:
        return found
    fit = Fit(counted, min(default, max(1, window - counted - _SPARE)))
    return [(one, fit if one.target is choice.target else other) for one, other in found]


def _draft(
    gateway: Gateway,
    principal: Principal,
    operation: Operation,
    labels: dict[str, str],
    priority: str,
    route: Route,
    found: list[Place],
    *,
    is_counted: bool = False,
) -> RequestState:
    """The request as it would be admitted now, to the first of `found` that has room. Raises ApiError.

    is_counted: whether its prompt is the engine's count, not an estimate.
    """
    choice, fit = found[0]
    target, replica = choice.target, choice.replica
    prompt, max_tokens = fit.prompt, fit.max_tokens
    now_ms = int(time.time() * 1000)
    request_id = new_request_id(now_ms)
    quotes = quotes_of(gateway.snapshot.prices, principal, route, now_ms)
    quote = quotes[target.name]
    book = gateway.snapshot.budgets
    budgets = book.above(tenant=principal.tenant, project=principal.project, key=principal.key, model=operation.model)
    is_hard = any(budget.hard for budget in budgets)
    held_prompt, most_prompt = _prompt_bounds(operation, route, prompt, is_hard=is_hard, is_counted=is_counted)
    amounts = {
        REQUESTS: 1,
        INPUT_TOKENS: prompt,
        OUTPUT_TOKENS: operation.n * max_tokens,
        CONCURRENCY: 1,
        COST: min(_DEAREST, worst_cost(quotes, held_prompt, operation.n * max_tokens)),
    }
    meters = principal.meters + book.meters(budgets, at_ms=now_ms)
    event = UsageEvent(
        request_id=str(request_id),
        tenant=principal.tenant,
        project=principal.project,
        key=principal.key,
        model=operation.model,
        target=target.name,
        replica=replica.name,
        currency=principal.currency,
        price=quote.version if quote else None,
        rates=quote.rates if quote else None,
        admitted_at=iso(now_ms),
        labels=operation.labels | labels,
    )
    request = RequestState(
        request_id=request_id,
        operation=operation,
        principal=principal,
        route=route,
        choice=choice,
        taken=Taken(meters, amounts, rooms=gateway.placement.rooms(one for one, _ in found)),
        event=priced(event),
        quotes=quotes,
        prompt_estimate=prompt,
        held_prompt=held_prompt,
        most_prompt=most_prompt,
        max_tokens=max_tokens,
        priority=priority,
    )
    if None in quotes.values():
        for budget in budgets:
            if budget.hard:
                raise no_price(request, budget)
    return request


def _prompt_bounds(
    operation: Operation, route: Route, prompt: int, *, is_hard: bool, is_counted: bool
) -> tuple[int, int]:
    """The tokens of a prompt that budgets hold, and the most that are billed whatever the upstream counts.

    is_hard: whether one of the budgets is. A hard one is charged no more than it held; but what media may come to
    nobody can tell ahead.
    """
    ceiling, window = operation.prompt_ceiling, route.context_window
    held = max(prompt, min(ceiling, window)) if is_hard and not is_counted else prompt
    return held, held if is_hard and operation.is_text else max(ceiling, window)


def _fitting_default(request: RequestState, said: NotHeld) -> int | None:
    """The max_tokens that what is left of a budget pays for, where the client named none; None: it is refused."""
    if request.operation.max_tokens is not None or not isinstance(said, Exhausted):
        return None
    most = largest_output(request, said.left)
    return most if _LEAST_DEFAULT <= most < request.max_tokens else None


def _may_fit(request: RequestState, said: NotHeld) -> bool:
    """Whether a prompt smaller than was to be held might fit what refused: a budget, or for good a limit of tokens."""
    if isinstance(said, TooLarge):
        return said.meter.measure == INPUT_TOKENS
    # A max_tokens that no client named is cut to what fits beside the prompt, which may be little beside its ceiling.
    output = request.most_output if request.operation.max_tokens is not None else _LEAST_DEFAULT * request.operation.n
    return isinstance(said, Exhausted | Held) and worst_cost(request.quotes, 1, output) <= said.left
