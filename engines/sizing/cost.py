"""Money: what tokens cost on one's own GPUs, and when a hosted API is cheaper.

Estimates in floating point, in whatever currency the prices are given in; nothing here is billed.
"""

from dataclasses import dataclass

from engines.sizing.checks import within
from engines.sizing.day import Capacity, Day
from engines.sizing.lengths import Workload

MILLION = 1_000_000


@dataclass(frozen=True)
class Prices:
    """`gpu_hour` for one GPU; hosted prices per million tokens, None: not compared."""

    gpu_hour: float
    hosted_input: float | None = None
    hosted_output: float | None = None

    def __post_init__(self) -> None:
        within("GPU-hour price", self.gpu_hour, 0.0001, 100_000)
        for name, value in (("hosted input price", self.hosted_input), ("hosted output price", self.hosted_output)):
            if value is not None:
                within(name, value, 0, 100_000)


@dataclass(frozen=True)
class Cost:
    """Per million output tokens (all cost laid on them) and per million tokens of both kinds; `_following` with
    replicas that follow the load, `at_capacity` with every replica at its best rate all day."""

    per_day: float
    per_day_following: float
    per_million_output: float
    per_million_output_following: float
    per_million_output_at_capacity: float
    per_million_total: float


@dataclass(frozen=True)
class BreakEven:
    """`hosted_per_day` for the same tokens; `rate` requests/s on average at which the fleet costs the same, and the
    share `utilisation` of what it can hold that this is (above 1: it never pays at these prices)."""

    hosted_per_request: float
    hosted_per_day: float
    rate: float
    utilisation: float
    cheaper: str


def per_million(price_hour: float, tokens_per_second: float, utilisation: float = 1.0) -> float:
    """price / (tokens/s x 3,600 x utilisation) x 1e6. 2.50 an hour at 2,500 tokens/s: 0.2778; at 10% load 2.778."""
    within("utilisation", utilisation, 1e-9, 1)
    within("tokens per second", tokens_per_second, 1e-9, 1e12)
    return price_hour / (tokens_per_second * 3600 * utilisation) * MILLION


def over_day(fleet: Capacity, workload: Workload, day: Day, prices: Prices) -> Cost:
    still, following = day.gpu_hours * prices.gpu_hour, day.gpu_hours_following * prices.gpu_hour
    return Cost(
        per_day=still,
        per_day_following=following,
        per_million_output=still / day.output_tokens * MILLION,
        per_million_output_following=following / day.output_tokens * MILLION,
        per_million_output_at_capacity=per_million(prices.gpu_hour * fleet.gpus, fleet.capacity * workload.output.mean),
        per_million_total=still / (day.output_tokens + day.input_tokens) * MILLION,
    )


def break_even(fleet: Capacity, workload: Workload, day: Day, prices: Prices) -> BreakEven | None:
    """Where the fleet, left on all day, costs what a hosted API would: gpus x price / 3,600 / hosted price of one
    request. None without both hosted prices. Cached input is counted at the full hosted price."""
    if prices.hosted_input is None or prices.hosted_output is None:
        return None
    tokens = workload.prompt.mean * prices.hosted_input + workload.output.mean * prices.hosted_output
    per_request = tokens / MILLION
    hosted = per_request * day.requests
    own = day.gpu_hours * prices.gpu_hour
    rate = fleet.gpus * prices.gpu_hour / 3600 / per_request if per_request else float("inf")
    return BreakEven(per_request, hosted, rate, rate / fleet.capacity, "own GPUs" if own < hosted else "hosted")
