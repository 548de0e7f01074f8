"""Which replicas there are to ask, as the operators wrote it down."""

from decimal import Decimal

import msgspec

from engines.models import Replica
from engines.protocols import PROTOCOLS, Upstream
from headrace_core import sealing


class Member(msgspec.Struct, frozen=True):
    """One replica of a pool; `name` is `pool/replica`. `wanted`: not told to drain. `hour_cost` while it is up."""

    name: str
    pool: str
    upstream: Upstream
    wanted: bool
    hour_cost: Decimal
    currency: str


def members() -> list[Member]:
    """All replicas, those that drain too: they still run."""
    rows = Replica.objects.select_related("pool").order_by("pool", "name")
    # A newer version may know engines that this one does not.
    return [_member(replica) for replica in rows if replica.pool.engine in PROTOCOLS]


def _member(replica: Replica) -> Member:
    pool = replica.pool
    return Member(
        name=f"{pool.name}/{replica.name}",
        pool=pool.name,
        upstream=Upstream(PROTOCOLS[pool.engine], replica.url.rstrip("/"), pool.model, _opened(pool.api_key)),
        wanted=replica.enabled,
        hour_cost=pool.gpu_hour_cost * pool.gpus_per_replica,
        currency=pool.cost_currency,
    )


def _opened(sealed: bytes | memoryview | None) -> str | None:
    """A key that none of our secrets opens any more takes the load away, not the collector."""
    try:
        return sealing.open(bytes(sealed)) if sealed else None
    except sealing.Unreadable:
        return ""
