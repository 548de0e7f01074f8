"""Hours of pools and targets, as the collector and the drain would have written them."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from billing.models import TargetHour
from engines.models import Pool, PoolHour

DAY = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)


def pool(name: str = "gpu", **fields: object) -> Pool:
    return Pool.objects.create(name=name, engine="sglang", model="m", **fields)


def up(
    hour: datetime,
    *,
    name: str = "gpu",
    cost: str = "2.5",
    replicas: float = 1,
    covered: float = 3600,
    currency: str = "USD",
) -> None:
    """The pool was up for `covered` seconds of the hour, at `cost` an hour for all its replicas."""
    PoolHour.objects.create(
        pool=name,
        hour=hour,
        currency=currency,
        cost=Decimal(cost) * Decimal(covered) / 3600,
        up_seconds=replicas * covered,
        covered_seconds=covered,
        first_at=hour,
        last_at=hour + timedelta(seconds=covered - 10),
    )


def used(
    hour: datetime,
    output: int,
    *,
    name: str = "gpu",
    model: str = "chat",
    prompt: int = 0,
    cached: int = 0,
    cost: str = "0",
    currency: str = "USD",
) -> None:
    TargetHour.objects.create(
        target=name,
        model=model,
        hour=hour,
        currency=currency,
        input_tokens=prompt,
        cached_input_tokens=cached,
        output_tokens=output,
        cost=Decimal(cost),
    )
