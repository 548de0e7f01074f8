"""What an operator sees first: the last 24 hours, what waits, and what may be wrong. Read from the rollups: cheap."""

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Sum
from django.urls import reverse
from django.utils import timezone

from billing.invoicing.overdue import count_overdue
from billing.models import DeadLetter, LedgerCheckRun, UsageHour, UsageRecord
from engines.models import PoolHour, Replica
from headrace_core.currencies import MINOR_UNITS
from routing.models import Model
from tenants.models import Tenant

SPAN = timedelta(hours=24)
LATEST = 10
_COUNTS = ("requests", "errors", "cancelled", "unpriced", "input_tokens", "cached_input_tokens", "output_tokens")


@dataclass(frozen=True)
class Card:
    title: str
    value: str
    detail: str
    link: str
    is_bad: bool = False


@dataclass(frozen=True)
class Overview:
    cards: list[Card]
    latest: list[UsageRecord]


def today() -> Overview:
    """Counts of the last 24 hours (whole hours of the rollup) and the newest records."""
    hours = UsageHour.objects.filter(hour__gte=timezone.now() - SPAN).order_by("currency").values("currency")
    sums: list[Any] = list(
        hours.annotate(money=Sum("cost"), **{f"n_{name}": UsageHour.total(name) for name in _COUNTS})
    )
    totals = {name: sum(each[f"n_{name}"] for each in sums) for name in _COUNTS}
    costs = {each["currency"]: each["money"] for each in sums}
    return Overview(
        [*_use(totals), _cost(costs, totals), _engines(), _fleet(), _letters(), _invoices(), _books()],
        list(UsageRecord.objects.all()[:LATEST]),
    )


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _use(totals: dict[str, int]) -> list[Card]:
    requests, prompt, cached = totals["requests"], totals["input_tokens"], totals["cached_input_tokens"]
    ended = f"{totals['errors']:,} failed, {totals['cancelled']:,} cancelled, in 24 hours"
    share = f"{round(100 * cached / prompt)} % of them cached" if prompt else "none in 24 hours"
    link = reverse("admin:billing_usagehour_changelist")
    return [
        Card("Requests", f"{requests:,}", ended, link),
        Card("Input tokens", f"{prompt:,}", share, link),
        Card("Output tokens", f"{totals['output_tokens']:,}", "in 24 hours", link),
    ]


def _cost(costs: dict[str, Decimal], totals: dict[str, int]) -> Card:
    """One amount a currency. What has no price is said, and never added as 0."""
    amounts = [f"{_amount(cost, currency)} {currency}" for currency, cost in costs.items() if cost]
    unpriced = totals["unpriced"]
    detail = f"{_counted(unpriced, 'request')} unpriced" if unpriced else "in 24 hours"
    link = reverse("admin:billing_usagehour_changelist")
    return Card("Cost", ", ".join(amounts) or ("unpriced" if unpriced else "0"), detail, link)


def _amount(cost: Decimal, currency: str) -> str:
    """To the currency's minor unit; what is less than one is not shown as nothing."""
    digits = MINOR_UNITS.get(currency, 2)
    least = Decimal(1).scaleb(-digits)
    return f"{cost:,.{digits}f}" if cost >= least else f"< {least}"


def _engines() -> Card:
    """What our own engines cost, one amount a currency; nothing where nothing was sampled."""
    hours = PoolHour.objects.filter(hour__gte=timezone.now() - SPAN).order_by()
    sums = hours.values_list("currency").annotate(cost=Sum("cost")).order_by("currency")
    amounts = [f"{cost:,.2f} {currency}" for currency, cost in sums]
    detail = "in 24 hours" if amounts else "no replica was sampled"
    return Card("Engine cost", ", ".join(amounts) or "–", detail, reverse("costs:page"))


def _fleet() -> Card:
    enabled = list(Replica.objects.values_list("enabled", flat=True))
    models, tenants = Model.objects.filter(enabled=True).count(), Tenant.objects.count()
    detail = f"{_counted(models, 'model')}, {_counted(tenants, 'tenant')}"
    link = reverse("fleet:page")
    return Card("Replicas enabled", f"{sum(enabled):,} of {len(enabled):,}", detail, link, is_bad=not any(enabled))


def _letters() -> Card:
    waiting = DeadLetter.objects.filter(replayed_at=None).count()
    detail = "usage the ledger could not take" if waiting else "the ledger took everything"
    return Card(
        "Dead letters", f"{waiting:,}", detail, reverse("admin:billing_deadletter_changelist"), is_bad=waiting > 0
    )


def _invoices() -> Card:
    overdue = count_overdue(timezone.now())
    detail = "the settlement page says what they wait for" if overdue else "every period that is over is invoiced"
    return Card("Overdue invoices", f"{overdue:,}", detail, reverse("settlement:page"), is_bad=overdue > 0)


def _books() -> Card:
    """What the nightly check found: none for two days is as bad as a difference, once there are records."""
    last = LedgerCheckRun.objects.defer("report").first()
    link = reverse("admin:billing_ledgercheckrun_changelist")
    if last is None:
        return Card("Books", "not checked yet", "checked every night", link)
    age = timezone.now() - last.at
    detail = f"checked {last.at:%Y-%m-%d %H:%M} UTC"
    value = f"{_counted(last.differences, 'difference')}" if last.differences else "agree"
    return Card("Books", value, detail, link, is_bad=last.differences > 0 or age > timedelta(days=2))
