"""Asking for counters to be made anew whose use was priced otherwise than it was charged: within seconds they are.

A counter is what the ledger has and the stream (counters.py), so it is enough to say which: asked twice, or asked for
nothing, it comes to the same. If the asking is lost, the next rebuild of all of them puts them right.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

import redis

from billing.models import Budget
from billing.periods import read_zones
from tenants.meters import counters
from tenants.meters.scope import Scope


class Use(NamedTuple):
    """Where and when something was used."""

    tenant: str
    project: str
    key: str
    model: str
    at: datetime


def recount(client: "redis.Redis", uses: Iterable[Use]) -> None:
    """Have the counters of all budgets that count any of `uses` made anew."""
    uses = {use._replace(at=_quarter(use.at)) for use in uses}
    tenants = {use.tenant for use in uses}
    if not tenants:
        return
    zones, keys = read_zones(tenants), set()
    by_tenant: dict[str, list[Budget]] = {}
    for budget in Budget.objects.filter(tenant__in=tenants, enabled=True):
        by_tenant.setdefault(budget.tenant_id, []).append(budget)
    for use in uses:
        for budget in by_tenant.get(use.tenant, ()):
            if _counts(budget, use):
                keys.add(counters.key_of(budget.pk, zones.window_at(use.tenant, budget.period, use.at).start_ms))
    counters.want(client, keys)


def _quarter(at: datetime) -> datetime:
    """Windows end between quarters of an hour: a million uses are a few thousand."""
    return at.replace(minute=at.minute // 15 * 15, second=0, microsecond=0)


def _counts(budget: Budget, use: Use) -> bool:
    return Scope(budget.project, budget.key, budget.model).covers(Scope(use.project, use.key, use.model))
