"""The lines of one pool: its cost shared between its models, beside what they were charged and what others ask."""

from datetime import date, datetime
from decimal import Decimal
from typing import NamedTuple

from billing.cost.arithmetic import (
    Tokens,
    break_even,
    full_load,
    per_million,
    rounded,
    shared,
    together,
    utilisation,
)
from billing.cost.exchange_rates import Exchange
from billing.cost.hosted import Hosted
from billing.cost.line import Line
from billing.cost.pool_hours import Stretch, Use
from billing.cost.report_query import Asked


class PoolLines:
    """Makes the lines of one pool."""

    def __init__(
        self, asked: Asked, pool: str, exchange: Exchange, listed: dict[str, Hosted], best: float | None, usual: str
    ) -> None:
        self._asked, self._pool, self._exchange = asked, pool, exchange
        self._listed, self._best = listed, best
        self._usual = usual

    def of_bucket(self, start: datetime, bucket: list[Stretch]) -> list[Line]:
        """A line for each currency the pool's cost was in, times each model; one without a cost has what is known."""
        currencies = sorted({currency for hour in bucket for currency in hour.cost}) or [self._usual]
        # Hours that nobody sampled are told once, in one of them.
        home = self._usual if self._usual in currencies else currencies[-1]
        return [line for currency in currencies for line in self._in_currency(start, bucket, currency, home)]

    def _in_currency(self, start: datetime, bucket: list[Stretch], currency: str, home: str) -> list[Line]:
        day = start.date()
        # Hours belong to the currency that most of their cost is in: a pool changes it once in a lifetime.
        mine = [hour for hour in bucket if (hour.main or home) == currency]
        shown = self._asked.currency or currency
        rate = self._exchange.rate(currency, shown, day) if currency else None
        seen = [hour for hour in mine if hour.is_seen and hour.cost]
        work = together([use.tokens for hour in seen for use in hour.uses.values()])
        seen_hours = sum(hour.up_seconds for hour in seen) / 3600
        used = utilisation(work.output, seen_hours, self._best)
        whole = _Whole(
            start=start,
            day=day,
            currency=shown,
            mine=mine,
            seen=seen,
            cost=self._converted(bucket, currency, rate),
            seen_cost=self._converted(seen, currency, rate),
            seen_hours=seen_hours,
            seen_tokens=work.all,
            utilisation=None if used is None else round(used, 4),
            load=Decimal(str(used)) if used else None,
            up_hours=round(sum(hour.up_seconds for hour in mine) / 3600, 4),
            gap_seconds=round(sum(hour.gap for hour in mine), 1),
            missing=(f"{currency}/{shown}",) if currency and rate is None else (),
        )
        weights = _weights(seen, mine, bucket)
        costs = [None] * len(weights) if whole.cost is None else shared(whole.cost, list(weights.values()))
        return [
            self._of_model(whole, model, cost)
            for model, cost in zip(weights, costs, strict=True)
            if self._asked.model in {None, model}
        ]

    @staticmethod
    def _converted(hours: list[Stretch], currency: str, rate: Decimal | None) -> Decimal | None:
        costs = [hour.cost[currency] for hour in hours if currency in hour.cost]
        return None if rate is None or not costs else sum(costs, Decimal(0)) * rate

    def _of_model(self, whole: "_Whole", model: str, cost: Decimal | None) -> Line:
        uses = [hour.uses[model] for hour in whole.mine if model in hour.uses]
        tokens = together([use.tokens for use in uses])
        counted = together([hour.uses[model].tokens for hour in whole.seen if model in hour.uses])
        share = Decimal(counted.all) / whole.seen_tokens if whole.seen_tokens else Decimal(1)
        mine_cost = None if whole.seen_cost is None else whole.seen_cost * share
        per_output, per_token = per_million(mine_cost, counted.output), per_million(mine_cost, counted.all)
        full_output = full_token = None
        if whole.load and per_output is not None and per_token is not None:
            # The model's share of the pool's work stays as it was; the same hours simply do more.
            full_output, full_token = rounded(per_output * whole.load), rounded(per_token * whole.load)
        elif not counted.output:
            full_output = full_load(whole.seen_cost, whole.seen_hours, self._best)
        charged, missing = self._charged(whole, uses)
        hosted = self._hosted(whole, model, counted, full_output)
        return Line(
            start=whole.start,
            pool=self._pool,
            model=model,
            currency=whole.currency,
            cost=cost,
            up_hours=whole.up_hours,
            gap_seconds=whole.gap_seconds,
            tokens=tokens,
            per_output=per_output,
            per_token=per_token,
            full_per_output=full_output,
            full_per_token=full_token,
            utilisation=whole.utilisation,
            charged=charged,
            charged_per_output=per_million(charged, tokens.output),
            margin=None if charged is None or cost is None else charged - cost,
            hosted=hosted.name,
            hosted_per_output=hosted.per_output,
            hosted_per_token=hosted.per_token,
            break_even=hosted.break_even,
            missing=tuple(dict.fromkeys((*whole.missing, *missing, *hosted.missing))),
        )

    def _charged(self, whole: "_Whole", uses: list[Use]) -> tuple[Decimal | None, list[str]]:
        """What tenants were charged, in the line's currency; None with the rates that are missing for it."""
        total, missing = Decimal(0), []
        for use in uses:
            for theirs, amount in use.charged.items():
                rate = self._exchange.rate(theirs, whole.currency, whole.day) if whole.currency else None
                if rate is None:
                    missing.append(f"{theirs}/{whole.currency or '?'}")
                else:
                    total += amount * rate
        return (None if missing else rounded(total)), sorted(missing)

    def _hosted(self, whole: "_Whole", model: str, tokens: Tokens, full_output: Decimal | None) -> "_Beside":
        hosted = self._asked.hosted or self._listed.get(model)
        if hosted is None or not whole.currency or not tokens.all:
            return _NOTHING
        rate = self._exchange.rate(hosted.currency, whole.currency, whole.day)
        if rate is None:
            return _Beside(hosted.name, missing=(f"{hosted.currency}/{whole.currency}",))
        cost = hosted.cost(tokens) * rate
        per_output = per_million(cost, tokens.output)
        even = break_even(full_output, per_output)
        return _Beside(hosted.name, per_output, per_million(cost, tokens.all), None if even is None else round(even, 4))


def _weights(seen: list[Stretch], mine: list[Stretch], bucket: list[Stretch]) -> dict[str, int]:
    """What each model has of a cost: its tokens in `seen`, where there are none in `mine`, then in `bucket`, else 0.

    The models of `mine`, where there are none those of `bucket`; "" where none was used at all.
    """
    models = sorted({model for hour in mine for model in hour.uses})
    models = models or sorted({model for hour in bucket for model in hour.uses}) or [""]
    weights: dict[str, int] = {}
    for hours in (seen, mine, bucket):
        for model in models:
            weights[model] = sum(hour.uses[model].tokens.all for hour in hours if model in hour.uses)
        if any(weights.values()):
            break
    return weights


class _Whole(NamedTuple):
    """What a bucket's lines in one currency share. `seen...`: of the hours that figures per million are of.

    load: the utilisation unrounded; None where nothing was written.
    """

    start: datetime
    day: date
    currency: str
    mine: list[Stretch]
    seen: list[Stretch]
    cost: Decimal | None
    seen_cost: Decimal | None
    seen_hours: float
    seen_tokens: int
    utilisation: float | None
    load: Decimal | None
    up_hours: float
    gap_seconds: float
    missing: tuple[str, ...]


class _Beside(NamedTuple):
    """What a hosted provider would have asked for a line's tokens."""

    name: str = ""
    per_output: Decimal | None = None
    per_token: Decimal | None = None
    break_even: float | None = None
    missing: tuple[str, ...] = ()


_NOTHING = _Beside()
