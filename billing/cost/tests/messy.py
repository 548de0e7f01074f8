"""Three weeks of pools and targets with everything in them that a report has to get right, the same each time."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random

from billing.cost.tests.world import HOUR, pool
from billing.models import ExchangeRate, TargetHour
from engines.models import PoolHour

# Clocks change in Berlin, and by half an hour on Lord Howe; the newest hour is not over.
START = datetime(2026, 3, 20, 5, tzinfo=UTC)
NOW = datetime(2026, 4, 9, 10, 20, tzinfo=UTC)
POOLS = ("large", "small", "late", "unsampled", "gone")
MODELS = ("chat", "code", "embed")
_HOURS = int((NOW - START) / HOUR) + 1


def make() -> None:
    """`late` comes after a week, `gone` is no pool any more, `unsampled` was only used. Models share the pools."""
    for name, currency in (("large", "USD"), ("small", "EUR"), ("late", "EUR"), ("unsampled", "GBP")):
        pool(name, cost_currency=currency)
    pool("idle")  # neither sampled nor used
    draw = Random(17)
    sampled, used = [], []
    for name in POOLS:
        span = {"late": range(170, _HOURS), "gone": range(300)}.get(name, range(_HOURS))
        for hour in (START.replace(minute=0) + number * HOUR for number in span):
            if name != "unsampled" and draw.random() > 0.06 and hour.hour != 3:
                sampled += _sampled(draw, name, hour)
            used += _used(draw, name, hour)
    PoolHour.objects.bulk_create(sampled)
    TargetHour.objects.bulk_create(used)
    ExchangeRate.objects.create(base="USD", quote="EUR", day=date(2026, 3, 24), rate=Decimal("0.91"))
    ExchangeRate.objects.create(base="EUR", quote="USD", day=date(2026, 4, 1), rate=Decimal("1.13"))


def _sampled(draw: Random, name: str, hour: datetime) -> list[PoolHour]:
    """Mostly the whole hour; else a part of it, nothing of it up, or in two currencies, at times at the same cost."""
    over = min(3600, int((NOW - hour).total_seconds()))
    covered = over if draw.random() < 0.8 else draw.randrange(10, over, 10)
    currency = "EUR" if name in {"small", "late"} else "USD"
    shares = (
        [(currency, covered)] if draw.random() < 0.9 else [(currency, covered // 2), ("GBP", covered - covered // 2)]
    )
    replicas = draw.choice((0, 1, 1, 1, 4))
    return [
        PoolHour(
            pool=name,
            hour=hour,
            currency=each,
            cost=Decimal(seconds * replicas) / 3600 * draw.choice((2, 2, 3)),
            up_seconds=seconds * replicas,
            covered_seconds=seconds,
            first_at=hour,
            last_at=hour + timedelta(seconds=covered - 10),
        )
        for each, seconds in shares
    ]


def _used(draw: Random, name: str, hour: datetime) -> list[TargetHour]:
    """Of some models, none or all, in one or two currencies; at times without tokens, or for nothing."""
    rows = []
    for model in draw.sample(MODELS, draw.randrange(4)):
        for currency in draw.choice((("USD",), ("EUR",), ("EUR", "USD"))):
            prompt, output = draw.choice((0, draw.randrange(10**7))), draw.choice((0, draw.randrange(10**7)))
            cost = draw.choice((Decimal(0), Decimal(draw.randrange(10**6)) / 10**4))
            rows.append(
                TargetHour(
                    target=name,
                    model=model,
                    hour=hour,
                    currency=currency,
                    input_tokens=prompt,
                    cached_input_tokens=prompt // 3,
                    output_tokens=0 if model == "embed" else output,
                    cost=cost,
                )
            )
    return rows
