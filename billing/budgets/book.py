"""The budgets as the data plane looks them up: those above a request, as meters of the window it is admitted in.

Rows come as tuples in the order of SELECT; loading is whoever has a connection's business (headrace/api/snapshot.py).
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec

from billing.budgets.zones import Zones
from tenants.meters.counters import key_of
from tenants.meters.meter import COST, Meter

TABLE = "billing_budget"
SELECT = (
    "SELECT id, tenant_id, project, key, model, name, amount, period, hard, extra, extra_until"
    " FROM billing_budget WHERE enabled ORDER BY id"
)
HARD, SOFT = "budget", "soft_budget"


class Budget(msgspec.Struct, frozen=True):
    """One row. An empty project, key or model is any; `extra` counts for requests admitted before `extra_until`."""

    id: int
    tenant: str
    project: str
    key: str
    model: str
    name: str
    amount: Decimal
    period: str
    hard: bool
    extra: Decimal | None
    extra_until: datetime | None

    def covers(self, project: str, key: str, model: str) -> bool:
        return self.project in {"", project} and self.key in {"", key} and self.model in {"", model}

    def limit_at(self, at: datetime) -> int:
        """What may be spent, in nano-units."""
        extra = self.extra if self.extra and self.extra_until and at < self.extra_until else Decimal(0)
        return int((self.amount + extra).scaleb(9))


class BudgetBook:
    """Built whole from the rows of SELECT. A request's meters are found by two look-ups, and made once a window."""

    def __init__(self, rows: Iterable[tuple[Any, ...]] = (), zones: Zones | None = None) -> None:
        self._zones = zones or Zones()
        self._of_tenant: dict[str, list[Budget]] = {}
        for row in rows:
            budget = Budget(*row)
            self._of_tenant.setdefault(budget.tenant, []).append(budget)
        self._above: dict[tuple[str, str, str, str], list[Budget]] = {}
        self._made: dict[int, tuple[int, int, Meter]] = {}

    def above(self, *, tenant: str, project: str, key: str, model: str) -> list[Budget]:
        """The budgets that such a request counts in."""
        if tenant not in self._of_tenant:
            return []
        scope = (tenant, project, key, model)
        if (found := self._above.get(scope)) is None:
            found = [budget for budget in self._of_tenant[tenant] if budget.covers(project, key, model)]
            self._above[scope] = found
        return found

    def meters(self, budgets: Iterable[Budget], *, at_ms: int) -> list[Meter]:
        """Their meters for a request admitted at `at_ms` (epoch ms)."""
        return [self._meter(budget, at_ms) for budget in budgets]

    def _meter(self, budget: Budget, at_ms: int) -> Meter:
        since, until, meter = self._made.get(budget.id, (0, 0, None))
        if meter is None or not since <= at_ms < until:
            at = datetime.fromtimestamp(at_ms / 1000, UTC)
            window = self._zones.window_at(budget.tenant, budget.period, at)
            meter = Meter(
                kind=HARD if budget.hard else SOFT,
                key=key_of(budget.id, window.start_ms),
                limit=budget.limit_at(at),
                measure=COST,
                scope=budget.name,
            )
            since, until = window.start_ms, window.end_ms
            if budget.extra_until is not None:
                ends = int(budget.extra_until.timestamp() * 1000)
                since, until = (since, min(until, ends)) if at_ms < ends else (max(since, ends), until)
            self._made[budget.id] = since, until, meter
        return meter
