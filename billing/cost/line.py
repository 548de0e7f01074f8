"""One line of a report: all its figures, each None where there is none."""

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from billing.cost.arithmetic import Tokens


class Line(NamedTuple):
    """One model at one pool in one bucket; an idle pool has a line without a model. Costs in `currency`.

    cost: of the engines, this model's share; None: nothing was sampled. up_hours: replica-hours of the pool.
    per_output, per_token: per million, None where there is none ("-"). full_...: at the pool's best sustained hour.
    utilisation: of that. charged: to tenants. hosted_...: what `hosted` asks for the same tokens, per million.
    gap_seconds: not sampled. missing: exchange rates that would be needed, as EUR/USD.
    """

    start: datetime
    pool: str
    model: str
    currency: str
    cost: Decimal | None
    up_hours: float
    gap_seconds: float
    tokens: Tokens
    per_output: Decimal | None = None
    per_token: Decimal | None = None
    full_per_output: Decimal | None = None
    full_per_token: Decimal | None = None
    utilisation: float | None = None
    charged: Decimal | None = None
    charged_per_output: Decimal | None = None
    margin: Decimal | None = None
    hosted: str = ""
    hosted_per_output: Decimal | None = None
    hosted_per_token: Decimal | None = None
    break_even: float | None = None
    missing: tuple[str, ...] = ()
