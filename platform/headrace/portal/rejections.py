"""Who was refused, why and how often, out of the hours of refusals. None of them is in a record or cost anything."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet, Sum

from billing.models import RefusedHour
from billing.periods import Calendar
from headrace.gateway.errors import TABLE
from tenants.models import Tenant

MOST = 100  # lines of the table of who

# code -> what happened, and what helps. Codes that are not here speak of single requests, and stand for themselves.
_MEANINGS = {
    "budget_exhausted": ("A budget is used up", "Raise the budget, ask for fewer tokens, or wait for its next period."),
    "budget_held": ("Running requests hold the rest of a budget", "It goes as they end."),
    "budget_rebuilding": ("A budget was being counted anew", "It goes by itself within seconds."),
    "rate_limit_exceeded": ("A limit was reached", "Send more slowly, or have the limit raised."),
    "request_too_large": ("Larger than a limit ever allows", "Ask for less at once, or have the limit raised."),
    "no_capacity": ("All replicas were busy", "Try again later; if it lasts, tell your operator."),
    "redis_unavailable": ("Limits could not be checked", "Try again; the platform's operators see it."),
    "starting": ("The gateway was starting", "It goes by itself."),
    "no_price": ("A model without a price, under a hard budget", "Your operator sets prices."),
    "model_not_found": ("No such model, or not for this key", "See Models, and what the key may call."),
    "context_length_exceeded": ("Longer than the model's context", "Shorten the prompt or max_tokens."),
    "invalid_request": ("Not a valid request", "The error's message says what is wrong."),
    "unsupported_parameter": ("A parameter that is not supported", "The error's message names it."),
    "body_too_large": ("A body too large", "Send less at once."),
    "request_timeout": ("The body did not arrive in time", "Look at the client's connection."),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reason:
    """An error code with how many it refused."""

    code: str
    requests: int

    @property
    def status(self) -> int | None:
        return TABLE[self.code][0] if self.code in TABLE else None

    @property
    def meaning(self) -> str:
        return _MEANINGS.get(self.code, (self.code, ""))[0]

    @property
    def help(self) -> str:
        return _MEANINGS.get(self.code, ("", ""))[1]


@dataclass(frozen=True, slots=True)
class Whose:
    project: str
    key: str
    reason: Reason


def hours(tenant: Tenant, start: datetime, end: datetime) -> QuerySet[RefusedHour]:
    return RefusedHour.objects.filter(tenant=tenant.pk, hour__gte=start, hour__lt=end).order_by()


def total(rows: QuerySet[RefusedHour]) -> int:
    return int(rows.aggregate(sum=Sum("requests", default=0))["sum"])


def by_reason(rows: QuerySet[RefusedHour]) -> list[Reason]:
    """The most frequent first."""
    found = rows.values_list("code").annotate(sum=Sum("requests")).order_by("-sum", "code")
    return [Reason(code, number) for code, number in found]


def by_time(rows: QuerySet[RefusedHour], days: Calendar | None) -> list[tuple[datetime, Reason]]:
    """Reasons by step (an hour; with `days`, a day of theirs), oldest first."""
    sums: Counter[tuple[datetime, str]] = Counter()
    for hour, code, number in rows.values_list("hour", "code").annotate(sum=Sum("requests")):
        sums[days.day_start(days.date_at(hour)) if days else hour, code] += number
    return [(step, Reason(code, number)) for (step, code), number in sorted(sums.items())]


def by_whom(rows: QuerySet[RefusedHour]) -> Sequence[Whose]:
    """Keys with their reasons, the most frequent first, MOST at most."""
    found = rows.values_list("project", "key", "code").annotate(sum=Sum("requests"))
    lines = found.order_by("-sum", "project", "key", "code")[:MOST]
    return [Whose(project, key, Reason(code, number)) for project, key, code, number in lines]
