"""The report: for each pool and model by hour, day or month, what a million tokens cost, and what they were sold for.

A pool's cost is shared between its models in proportion to all their tokens of the bucket. Figures per million are of
the hours that were sampled (hours.SEEN_SHARE); the others are its gap. Everything of a line is in one currency, its
pool's or the one asked for; lines of two currencies are never added up. Charges and hosted prices in other currencies
are converted at the rate of the bucket's first day; where one is missing the line says which, and has no such figure.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from billing.cost import hosted as hosted_prices
from billing.cost import hours as cost_hours
from billing.cost.arithmetic import NONE, Tokens, break_even, full_load, per_million, rounded, utilisation
from billing.cost.exchange import Exchange
from billing.cost.hosted import Hosted
from billing.cost.hours import Stretch
from engines.models import Pool

UTC_ZONE = ZoneInfo("UTC")
UNITS = ("hour", "day", "month")


@dataclass(frozen=True)
class Asked:
    """[start, end) and its buckets, in `zone`. `hosted`: compared with it instead of the providers' price lists."""

    start: datetime
    end: datetime
    by: str = "day"
    zone: ZoneInfo = UTC_ZONE
    pool: str | None = None
    model: str | None = None
    currency: str | None = None
    hosted: Hosted | None = None


@dataclass(frozen=True)
class Line:
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


@dataclass(frozen=True)
class Report:
    asked: Asked
    lines: list[Line]
    best: dict[str, float] = field(default_factory=dict)

    @property
    def currencies(self) -> list[str]:
        return sorted({line.currency for line in self.lines})

    @property
    def gap_seconds(self) -> float:
        return sum({(line.pool, line.start): line.gap_seconds for line in self.lines}.values())

    @property
    def missing(self) -> list[str]:
        return sorted({rate for line in self.lines for rate in line.missing})


def report(asked: Asked, *, now: datetime | None = None) -> Report:
    """What was asked, from the rollups alone."""
    now = now or datetime.now(UTC)
    exchange, listed = Exchange(), hosted_prices.listed(min(asked.end, now))
    configured = dict(Pool.objects.values_list("name", "cost_currency"))
    lines: list[Line] = []
    best: dict[str, float] = {}
    worked = cost_hours.read(asked.start, asked.end, by=asked.by, zone=str(asked.zone), pool=asked.pool, now=now)
    for pool, found in sorted(worked.items()):
        if found.best:
            best[pool] = found.best
        # Of hours that nobody sampled: the currency of the latest that somebody did, else the one to come.
        usual = found.last_currency or configured.get(pool, "")
        maker = _Maker(asked, pool, exchange, listed, found.best, usual)
        for start, bucket in _buckets(found.stretches, asked):
            lines += maker.lines(start, bucket)
    lines.sort(key=lambda line: (line.start, line.pool, line.model))
    return Report(asked, lines, best)


def bucket_start(hour: datetime, by: str, zone: ZoneInfo) -> datetime:
    """The start of the hour's bucket, which begins with the local hour, day or month. Days have 23 to 25 hours."""
    local = hour.astimezone(zone)
    if by == "hour":
        return hour.astimezone(zone)
    day = local.date() if by == "day" else local.date().replace(day=1)
    return datetime.combine(day, time(), zone)


def _buckets(found: Sequence[Stretch], asked: Asked) -> Iterable[tuple[datetime, list[Stretch]]]:
    buckets: dict[datetime, list[Stretch]] = {}
    for stretch in found:
        at = stretch.bucket
        start = (
            at.replace(tzinfo=UTC).astimezone(asked.zone)
            if asked.by == "hour"
            else datetime.combine(at.date(), time(), asked.zone)
        )
        buckets.setdefault(start, []).append(stretch)
    return buckets.items()


class _Maker:
    """Makes the lines of one pool."""

    def __init__(
        self, asked: Asked, pool: str, exchange: Exchange, listed: dict[str, Hosted], best: float | None, usual: str
    ) -> None:
        self._asked, self._pool, self._exchange = asked, pool, exchange
        self._listed, self._best = listed, best
        self._usual = usual

    def lines(self, start: datetime, bucket: list[Stretch]) -> list[Line]:
        """A line for each currency the pool's cost was in, times each model; one without a cost has what is known."""
        currencies = sorted({currency for hour in bucket for currency in hour.cost}) or [self._usual]
        return [line for currency in currencies for line in self._in_currency(start, bucket, currency)]

    def _in_currency(self, start: datetime, bucket: list[Stretch], currency: str) -> list[Line]:
        day = start.date()
        # Hours belong to the currency that most of their cost is in: a pool changes it once in a lifetime.
        mine = [hour for hour in bucket if hour.main in {None, currency}]
        shown = self._asked.currency or currency
        rate = self._exchange.rate(currency, shown, day) if currency else None
        seen = [hour for hour in mine if hour.is_seen and hour.cost]
        cost = self._converted(seen, currency, rate)
        models = sorted({model for hour in mine for model in hour.uses}) or [""]
        everything = sum((hour.tokens for hour in seen), NONE).all
        base = Line(
            start=start,
            pool=self._pool,
            model="",
            currency=shown,
            cost=self._converted(mine, currency, rate),
            up_hours=round(sum(hour.up_seconds for hour in mine) / 3600, 4),
            gap_seconds=round(sum(hour.gap for hour in mine), 1),
            tokens=NONE,
            missing=(f"{currency}/{shown}",) if currency and rate is None else (),
        )
        found = []
        for model in models:
            if self._asked.model is None or model == self._asked.model:
                found.append(self._of_model(base, mine, seen, cost, model, everything, day))
        return found

    @staticmethod
    def _converted(hours: list[Stretch], currency: str, rate: Decimal | None) -> Decimal | None:
        costs = [hour.cost[currency] for hour in hours if currency in hour.cost]
        return None if rate is None or not costs else sum(costs, Decimal(0)) * rate

    def _of_model(
        self,
        base: Line,
        mine: list[Stretch],
        seen: list[Stretch],
        cost: Decimal | None,
        model: str,
        everything: int,
        day: date,
    ) -> Line:
        tokens = sum((hour.uses[model].tokens for hour in mine if model in hour.uses), NONE)
        counted = sum((hour.uses[model].tokens for hour in seen if model in hour.uses), NONE)
        pool_output = sum(hour.tokens.output for hour in seen)
        up_hours = sum(hour.up_seconds for hour in seen) / 3600
        share = Decimal(counted.all) / everything if everything else Decimal(1)
        mine_cost = None if cost is None else cost * share
        used = utilisation(pool_output, up_hours, self._best)
        per_output, per_token = per_million(mine_cost, counted.output), per_million(mine_cost, counted.all)
        full_output = full_token = None
        if used and per_output is not None and per_token is not None:
            # The model's share of the pool's work stays as it was; the same hours simply do more.
            full_output, full_token = (rounded(each * Decimal(str(used))) for each in (per_output, per_token))
        elif not counted.output:
            full_output = full_load(cost, up_hours, self._best)
        charged, missing = self._charged(mine, model, base.currency, day)
        total = None if base.cost is None else base.cost * share
        line = replace(
            base,
            model=model,
            cost=None if total is None else rounded(total),
            tokens=tokens,
            per_output=per_output,
            per_token=per_token,
            full_per_output=full_output,
            full_per_token=full_token,
            utilisation=None if used is None else round(used, 4),
            charged=None if charged is None else rounded(charged),
            charged_per_output=per_million(charged, tokens.output),
            margin=None if charged is None or total is None else rounded(charged - total),
            missing=tuple(dict.fromkeys([*base.missing, *missing])),
        )
        return self._beside_hosted(line, counted, day)

    def _charged(self, hours: list[Stretch], model: str, currency: str, day: date) -> tuple[Decimal | None, list[str]]:
        """What tenants were charged, in `currency`; None with the rates that are missing for it."""
        total, missing = Decimal(0), []
        for hour in hours:
            for theirs, amount in hour.uses[model].charged.items() if model in hour.uses else ():
                rate = self._exchange.rate(theirs, currency, day) if currency else None
                if rate is None:
                    missing.append(f"{theirs}/{currency or '?'}")
                else:
                    total += amount * rate
        return (None if missing else total), missing

    def _beside_hosted(self, line: Line, tokens: Tokens, day: date) -> Line:
        hosted = self._asked.hosted or self._listed.get(line.model)
        if hosted is None or not line.currency or not tokens.all:
            return line
        rate = self._exchange.rate(hosted.currency, line.currency, day)
        if rate is None:
            missing = f"{hosted.currency}/{line.currency}"
            return replace(line, hosted=hosted.name, missing=tuple(dict.fromkeys([*line.missing, missing])))
        cost = hosted.cost(tokens) * rate
        per_output = per_million(cost, tokens.output)
        even = break_even(line.full_per_output, per_output)
        return replace(
            line,
            hosted=hosted.name,
            hosted_per_output=per_output,
            hosted_per_token=per_million(cost, tokens.all),
            break_even=None if even is None else round(even, 4),
        )


def default_span(by: str, now: datetime, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """What is shown unless asked otherwise: two days by the hour, thirty by the day, a year by the month."""
    end = now.astimezone(zone)
    days = {"hour": 2, "day": 30, "month": 365}[by]
    start = bucket_start(now - timedelta(days=days), "hour" if by == "hour" else by, zone)
    return start.replace(minute=0, second=0, microsecond=0), end
