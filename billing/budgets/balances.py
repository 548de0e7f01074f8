"""How budgets stand at this moment, for people: spent, held and left."""

from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import redis

from billing.amounts import plain
from billing.budgets.counters import current
from billing.models import Budget
from billing.periods import Window
from tenants.meters import counters


class Standing(NamedTuple):
    """Amounts are in the tenant's currency, exact; None where the counter is being made."""

    budget: Budget
    window: Window
    amount: Decimal
    spent: Decimal | None
    held: Decimal | None

    @property
    def left(self) -> Decimal | None:
        """Not below 0."""
        if self.spent is None or self.held is None:
            return None
        return max(Decimal(0), self.amount - self.spent - self.held)

    @property
    def percent(self) -> Decimal | None:
        return None if self.spent is None else 100 * self.spent / self.amount

    def as_object(self) -> dict[str, Any]:
        budget = self.budget
        return {
            "tenant": budget.tenant_id,
            "name": budget.name,
            "project": budget.project or None,
            "key": budget.key or None,
            "model": budget.model or None,
            "period": budget.period,
            "kind": "hard" if budget.hard else "soft",
            "currency": budget.tenant.currency,
            "amount": _text(self.amount),
            "spent": _text(self.spent),
            "held": _text(self.held),
            "left": _text(self.left),
            "from": None if self.window.is_endless else self.window.start.isoformat(),
            "to": None if self.window.is_endless else self.window.end.isoformat(),
        }


def standings(client: "redis.Redis", budgets: Iterable[Budget], *, now: datetime | None = None) -> list[Standing]:
    """How each stands in its present window. Raises redis.RedisError."""
    now = now or datetime.now(UTC)
    parts = current(budgets, now)
    found = counters.read(client, [part.key for part in parts])
    return [
        Standing(
            budget=part.budget,
            window=part.window,
            amount=part.budget.limit_at(now),
            spent=None if counter is None else Decimal(counter.spent).scaleb(-9),
            held=None if counter is None else Decimal(counter.held).scaleb(-9),
        )
        for part, counter in zip(parts, found, strict=True)
    ]


def _text(amount: Decimal | None) -> str | None:
    return None if amount is None else plain(amount)
