"""How a tenant's budgets stand, as bars and words, and who used them."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

import redis
from django.conf import settings

from billing.budgets.balances import Standing, standings
from billing.budgets.counters import current
from billing.models import Budget
from headrace.portal import figures
from headrace.portal.rollups import rollups

TOP = 5
MOST = 200  # budgets on a page
log = logging.getLogger("headrace.portal")


@dataclass(frozen=True, slots=True)
class Bar:
    """Percents of the bar's width: what is spent, what running requests hold beyond it, and where people are told."""

    spent: float
    held: float
    marks: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """One budget in its present window."""

    budget: Budget
    standing: Standing
    now: datetime

    @property
    def state(self) -> str:
        """off, counting, over, near or fine: `near` is past the first threshold."""
        percent = self.standing.percent
        if not self.budget.enabled:
            return "off"
        if percent is None:
            return "counting"
        if percent >= 100:
            return "over"
        return "near" if any(percent >= mark for mark in self.budget.thresholds) else "fine"

    @property
    def percent(self) -> str:
        percent = self.standing.percent
        if percent is None:
            return ""
        return "< 0.1" if 0 < percent < Decimal("0.1") else f"{percent:.1f}" if percent < 10 else f"{percent:,.0f}"

    @property
    def is_raised(self) -> bool:
        return self.budget.extra_until is not None and self.now < self.budget.extra_until

    @property
    def bar(self) -> Bar:
        """Its whole width is the amount, or what is spent and held where that is more."""
        spent, held = self.standing.spent or Decimal(0), self.standing.held or Decimal(0)
        whole = max(self.standing.amount, spent + held)
        marks = {self.standing.amount * percent / 100 for percent in self.budget.thresholds}
        inside = sorted(_percent(mark, whole) for mark in marks if mark < whole)
        return Bar(_percent(spent, whole), _percent(held, whole), tuple(inside))


def shown(budgets: Iterable[Budget], now: datetime) -> list[Shown]:
    """Each as it stands; without what is spent while Redis is away. The budgets' tenants are loaded."""
    budgets = list(budgets)
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=1) as client:
            found = standings(client, budgets, now=now)
    except redis.RedisError as error:
        log.warning("what budgets have spent is not shown: %s", error)
        parts = current(budgets, now)
        found = [Standing(part.budget, part.window, part.budget.limit_at(now), None, None) for part in parts]
    return [Shown(standing.budget, standing, now) for standing in found]


def used_by(one: Shown, by: str) -> list[figures.Figures]:
    """The dearest of a dimension in the budget's window."""
    budget, window = one.budget, one.standing.window
    chosen = {name: getattr(budget, name) for name in ("project", "key", "model")}
    return figures.grouped(rollups(budget.tenant, window.start, window.end, **chosen), by)[:TOP]


def _percent(part: Decimal, whole: Decimal) -> float:
    return round(float(100 * part / whole), 2)
