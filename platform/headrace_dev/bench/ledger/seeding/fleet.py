"""What the pools did meanwhile: every replica up and sampled all the time, as PoolHour has it after the collector."""

from datetime import UTC, timedelta

from engines.models import PoolHour
from headrace_dev.bench.ledger.seeding.offers import GPU_HOUR, POOLS, REPLICAS
from headrace_dev.bench.ledger.seeding.size import Size

_HOUR = timedelta(hours=1)


def make(size: Size) -> int:
    """Write the hours; how many. Cost is exact: GPU_HOUR for each replica and whole hour."""
    rows, hour = [], size.start.astimezone(UTC)
    while hour + _HOUR <= size.end:
        rows += [
            PoolHour(
                pool=pool,
                hour=hour,
                currency="EUR",
                cost=REPLICAS * GPU_HOUR,
                up_seconds=REPLICAS * 3600,
                covered_seconds=3600,
                first_at=hour,
                last_at=hour + _HOUR - timedelta(seconds=10),
            )
            for pool in POOLS
        ]
        hour += _HOUR
    return len(PoolHour.objects.bulk_create(rows, batch_size=5000))
