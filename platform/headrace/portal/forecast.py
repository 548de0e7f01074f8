"""What budgets will come to: what is spent, and for each day that is left the mean a day of the last seven.

Of a tenant younger than that, the mean of the days there are, one at least. It knows no weekends and no plans.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from headrace.portal.rollups import rollups
from headrace.portal.spending import Shown
from tenants.models import Tenant

LOOKED_BACK = timedelta(days=7)
_DAY, _SOON = timedelta(days=1), timedelta(days=3)
_FAR = 3650  # days; what lasts longer has no date


@dataclass(frozen=True, slots=True)
class Forecast:
    """Amounts in the tenant's currency. `at_end` is None without an end, `ends` where the money outlasts the period.

    is_over: at the end more is spent than the amount. is_soon: it ends within days, so that the hour matters.
    """

    a_day: Decimal
    at_end: Decimal | None
    ends: datetime | None
    is_over: bool
    is_soon: bool


def forecasts(tenant: Tenant, budgets: Sequence[Shown], now: datetime) -> list[Forecast | None]:
    """One for each; None where what is spent is not known now. One query for all of them."""
    known = [one for one in budgets if one.standing.spent is not None]
    sums = _spent_of_late(tenant, known, now) if known else {}
    days = max(min(LOOKED_BACK, now - tenant.created_at), _DAY) / _DAY
    return [
        forecast(one, sums[one.budget.pk] / Decimal(days), now) if one.budget.pk in sums else None for one in budgets
    ]


def forecast(one: Shown, a_day: Decimal, now: datetime) -> Forecast:
    """Where `one`, of which the spent is known, goes at so much a day."""
    spent, amount, window = one.standing.spent or Decimal(0), one.standing.amount, one.standing.window
    at_end = None if window.is_endless else spent + a_day * Decimal((window.end - now) / _DAY)
    left, ends = amount - spent, None
    if left > 0 and a_day and (days := left / a_day) < _FAR:
        ends = now + timedelta(days=float(days))
        ends = ends if window.is_endless or ends < window.end else None
    is_soon = ends is not None and ends - now < _SOON
    return Forecast(a_day, at_end, ends, at_end is not None and at_end > amount, is_soon)


def _spent_of_late(tenant: Tenant, budgets: Sequence[Shown], now: datetime) -> dict[int, Decimal]:
    """What each budget was charged since LOOKED_BACK, by its id."""
    arguments: list[str] = []
    sums = []
    for one in budgets:
        chosen = {name: value for name in ("project", "key", "model") if (value := getattr(one.budget, name))}
        scope = " AND ".join(f"{name} = %s" for name in chosen) or "true"
        total = " + ".join(
            f"coalesce(sum({name}) FILTER (WHERE {scope}), 0)" for name in ("cost_nano", "cost_nano_beyond")
        )
        sums.append(total)
        arguments += [*chosen.values()] * 2
    [spent] = rollups(tenant, now - LOOKED_BACK, now).select(", ".join(sums), *arguments)
    return {one.budget.pk: Decimal(nano).scaleb(-9) for one, nano in zip(budgets, spent, strict=True)}
