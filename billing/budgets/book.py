"""The budgets as the data plane looks them up: those above a request, as meters of the window it is admitted in.

Rows come as tuples in the order of SELECT (of these ids; of all where they are None); loading is whoever has a
connection's business (headrace/gateway/process/snapshot.py).
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec

from billing.periods import Zones
from tenants.meters.counters import key_of
from tenants.meters.meter import COST, Meter
from tenants.meters.scope import Scope

TABLE = "billing_budget"
SELECT = (
    "SELECT id, tenant_id, project, key, model, name, amount, period, hard, extra, extra_until"
    " FROM billing_budget WHERE enabled AND (%(ids)s::bigint[] IS NULL OR id = ANY(%(ids)s::bigint[])) ORDER BY id"
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

    @property
    def scope(self) -> Scope:
        return Scope(self.project, self.key, self.model)

    def limit_at(self, at: datetime) -> int:
        """What may be spent, in nano-units."""
        extra = self.extra if self.extra and self.extra_until and at < self.extra_until else Decimal(0)
        return int((self.amount + extra).scaleb(9))


class BudgetBook:
    """Built from the rows of SELECT, and changed row by row: what one tenant's budgets come to costs no other.

    A request's meters are found by two look-ups, and made once a window.
    """

    def __init__(self, rows: Iterable[tuple[Any, ...]] = (), zones: Zones | None = None) -> None:
        self._zones = zones or Zones()
        self._of_tenant: dict[str, dict[int, Budget]] = {}
        self._tenants: dict[int, str] = {}
        self._above: dict[str, dict[Scope, list[Budget]]] = {}
        self._made: dict[int, tuple[int, int, Meter]] = {}
        self.change((), rows)

    def change(self, ids: Iterable[int], rows: Iterable[tuple[Any, ...]]) -> None:
        """Take over `rows`; of `ids` those that are not among them exist, or are in force, no more."""
        fresh = {row[0]: Budget(*row) for row in rows}
        for number in {*ids, *fresh}:
            self._made.pop(number, None)
            if (tenant := self._tenants.pop(number, None)) is not None:
                self._of_tenant[tenant].pop(number, None)
                self._above.pop(tenant, None)
        for number, budget in fresh.items():
            self._tenants[number] = budget.tenant
            self._of_tenant.setdefault(budget.tenant, {})[number] = budget
            self._above.pop(budget.tenant, None)

    def change_zones(self, tenants: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> None:
        """The time zones of `tenants` are what `rows` of zones.SELECT say."""
        tenants = set(tenants)
        self._zones.replace(tenants, rows)
        for tenant in tenants:
            for number in self._of_tenant.get(tenant, ()):
                self._made.pop(number, None)

    def above(self, *, tenant: str, project: str, key: str, model: str) -> list[Budget]:
        """The budgets that such a request counts in, by their ids."""
        if not (budgets := self._of_tenant.get(tenant)):
            return []
        known = self._above.setdefault(tenant, {})
        scope = Scope(project, key, model)
        if (found := known.get(scope)) is None:
            covering = (budget for budget in budgets.values() if budget.scope.covers(scope))
            found = known[scope] = sorted(covering, key=lambda budget: budget.id)
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
