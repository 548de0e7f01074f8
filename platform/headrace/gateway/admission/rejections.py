"""What a client is told when a meter of its request has no room: which, when to come again, or what would fit."""

from decimal import Decimal

from billing.amounts import plain
from billing.budgets.book import Budget
from headrace.gateway.admission.limit_headers import limit_headers
from headrace.gateway.errors import ApiError
from headrace.gateway.state.charges import worst_cost
from headrace.gateway.state.request_state import RequestState
from tenants.meters.holds import Exhausted, Held, NotHeld, Rebuilding, TooLarge
from tenants.meters.meter import CONCURRENCY, INPUT_TOKENS, OUTPUT_TOKENS, REQUESTS

_LIMIT_NAMES = {
    REQUESTS: "requests per minute",
    INPUT_TOKENS: "input tokens per minute",
    OUTPUT_TOKENS: "output tokens per minute",
    CONCURRENCY: "concurrent requests",
}


def refusal(request: RequestState, said: NotHeld) -> ApiError:
    """The error of a request that nothing was taken for."""
    meter, wait = said.meter, said.wait_ms / 1000
    match said:
        case Exhausted():
            return _exhausted(request, said)
        case Held():
            currency = request.principal.currency
            return ApiError(
                "budget_held",
                f"The budget '{meter.scope}' has {money(said.left, currency)} left, but running requests hold so much"
                f" of it that {money(said.amount, currency)}, which this one may cost, do not fit now.",
                retry_after=wait,
                more_headers=limit_headers(said.levels),
            )
        case Rebuilding():
            return ApiError("budget_rebuilding", f"The budget '{meter.scope}' is being counted anew.", retry_after=wait)
        case TooLarge():
            return ApiError(
                "request_too_large",
                f"This request takes {said.amount} of the {meter.scope}'s {_LIMIT_NAMES[meter.measure]}"
                f" and could never be admitted: the limit is {meter.limit}.",
            )
        case _:
            return ApiError(
                "rate_limit_exceeded",
                f"The {meter.scope}'s limit of {meter.limit} {_LIMIT_NAMES[meter.measure]} is reached.",
                retry_after=wait,
                more_headers=limit_headers(said.levels),
            )


def no_price(request: RequestState, budget: Budget) -> ApiError:
    """A hard budget cannot be kept where nobody knows what a request costs."""
    return ApiError(
        "no_price",
        f"The model '{request.operation.model}' has no price in {request.principal.currency}, which the budget"
        f" '{budget.name}' wants.",
        param="model",
    )


def _exhausted(request: RequestState, said: Exhausted) -> ApiError:
    currency, most = request.principal.currency, largest_output(request, said.left)
    return ApiError(
        "budget_exhausted",
        f"The budget '{said.meter.scope}' has {money(said.left, currency)} left; this request may cost"
        f" {money(said.amount, currency)}. "
        + (f"The largest max_tokens that fits is {most}." if most else "No max_tokens fits: not even the prompt does."),
        param="max_tokens",
    )


def largest_output(request: RequestState, left: int) -> int:
    """The largest max_tokens with which the request costs at most `left` (1e-9 units) at worst; 0: none."""
    least, above = 0, request.max_tokens
    while least < above - 1:
        middle = (least + above) // 2
        if worst_cost(request.quotes, request.held_prompt, request.operation.n * middle) <= left:
            least = middle
        else:
            above = middle
    return least


def money(nano: int, currency: str) -> str:
    """As people read it: exact, without the zeros at its end."""
    return f"{plain(Decimal(nano).scaleb(-9))} {currency}"
