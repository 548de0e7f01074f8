"""What operators do to what a budget has spent: each is an adjustment on record, then a counter made anew.

Nothing here may run inside a transaction: the counter follows what is committed.
"""

from datetime import UTC, datetime

import redis

from billing import drain, drain_lock
from billing.budgets.counters import Part, current, ledger_sums, set_counters
from billing.models import Budget, BudgetAdjustment
from headrace_core import audit


def reset_budget(
    client: "redis.Redis", *, budget: Budget, who: str, origin: str, reason: str, now: datetime | None = None
) -> BudgetAdjustment | None:
    """Let the present window begin anew at nothing spent; the adjustment, None if nothing was. What runs stays held."""
    with drain_lock.alone():
        drain.drain_pending(client)
        [part] = current([budget], now or datetime.now(UTC))
        [spent] = ledger_sums([part])
        return _adjust(client, part, -spent, who, origin, reason) if spent else None


def adjust_budget(
    client: "redis.Redis", *, budget: Budget, nano: int, who: str, origin: str, reason: str, now: datetime | None = None
) -> BudgetAdjustment:
    """Add `nano` (1e-9 units, negative: take off) to what the present window has spent."""
    with drain_lock.alone():
        drain.drain_pending(client)
        [part] = current([budget], now or datetime.now(UTC))
        return _adjust(client, part, nano, who, origin, reason)


def _adjust(client: "redis.Redis", part: Part, nano: int, who: str, origin: str, reason: str) -> BudgetAdjustment:
    with audit.acting(who=who, origin=origin):
        adjustment = BudgetAdjustment.objects.create(
            tenant_id=part.budget.tenant_id,
            budget=part.budget,
            window_start=part.window.start,
            nano=nano,
            who=who,
            reason=reason,
        )
    set_counters(client, [part])
    return adjustment
