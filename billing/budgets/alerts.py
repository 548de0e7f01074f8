"""Alerts: once a threshold, a window and a budget, however many workers look. Each becomes notices, one a place.

Tenants take turns, and a run is over after FIND_SECONDS: the next one notes the rest. Of one tenant no more than
MOST_WAITING notices wait: what is beyond that is on record as not sent.
"""

import logging
import time
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal

import redis
from django.conf import settings
from django.db import DataError, IntegrityError, transaction

from billing.budgets.balances import Standing, standings
from billing.models import Budget, BudgetAlert, Delivery, Notice, WebhookEndpoint
from tenants.models import Member, Role

FIND_SECONDS = 3.0
MOST_WAITING = 1000
log = logging.getLogger("headrace.budgets")
# Who is written to. Viewers and developers cannot do anything about money.
_TOLD = (Role.OWNER, Role.ADMIN, Role.FINANCE)


def find_alerts(client: "redis.Redis", *, now: datetime | None = None) -> list[BudgetAlert]:
    """Note every threshold that what is spent has reached, with its notices; the alerts that are new.

    May run twice at once. Raises redis.RedisError.
    """
    budgets = Budget.objects.filter(enabled=True).exclude(thresholds=[]).select_related("tenant")
    reached = [(one, percent) for one in standings(client, budgets, now=now) for percent in _reached(one)]
    known = _known({one.budget.pk for one, _ in reached})
    fresh = [pair for pair in reached if (pair[0].budget.pk, pair[0].window.start, pair[1]) not in known]
    found, until = [], time.monotonic() + FIND_SECONDS
    for standing, percent in _by_turns(fresh):
        if time.monotonic() > until:
            break
        try:
            alert = _note(standing, percent)
        except (DataError, IntegrityError) as error:
            # The budget is gone by now, say. Whatever is wrong with one alert, all others are noted.
            log.error("%s at %d%% is not told: %s", standing.budget, percent, str(error).partition("\n")[0])
            continue
        if alert is not None:
            found.append(alert)
    return found


def _by_turns(fresh: list[tuple[Standing, int]]) -> list[tuple[Standing, int]]:
    """The first of each tenant, then the second of each, ..."""
    turns: Counter[str] = Counter()
    ranked = []
    for pair in fresh:
        tenant = pair[0].budget.tenant_id
        ranked.append((turns[tenant], pair))
        turns[tenant] += 1
    return [pair for _, pair in sorted(ranked, key=lambda each: each[0])]


def _reached(standing: Standing) -> list[int]:
    if standing.percent is None:
        return []
    return [percent for percent in sorted(set(standing.budget.thresholds)) if standing.percent >= percent]


def _known(budgets: Iterable[int]) -> set[tuple[int, datetime, int]]:
    rows = BudgetAlert.objects.filter(budget__in=budgets).values_list("budget", "window_start", "threshold")
    return set(rows)


@transaction.atomic
def _note(standing: Standing, percent: int) -> BudgetAlert | None:
    """The alert, with its notices, in one transaction; None if another worker was first."""
    budget = standing.budget
    alert, is_new = BudgetAlert.objects.get_or_create(
        budget=budget,
        window_start=standing.window.start,
        threshold=percent,
        defaults={"tenant_id": budget.tenant_id, "spent": standing.spent or Decimal(0), "amount": standing.amount},
    )
    if not is_new:
        return None
    endpoints = WebhookEndpoint.objects.filter(tenant=budget.tenant_id, enabled=True)
    notices = [Notice(tenant_id=budget.tenant_id, alert=alert, endpoint=endpoint) for endpoint in endpoints]
    notices += [Notice(tenant_id=budget.tenant_id, alert=alert, email=email) for email in _emails(budget.tenant_id)]
    waiting = Notice.objects.filter(tenant=budget.tenant_id, state=Delivery.WAITING).count()
    for notice in notices[max(0, MOST_WAITING - waiting) :]:
        notice.state, notice.answer = Delivery.FAILED, f"not sent: {MOST_WAITING} notices of the tenant wait already"
    Notice.objects.bulk_create(notices)
    return alert


def _emails(tenant: str) -> set[str]:
    """None where this installation sends no e-mail."""
    if not settings.EMAIL_HOST:
        return set()
    members = Member.objects.of(tenant).filter(role__in=_TOLD, user__is_active=True).exclude(user__email="")
    return set(members.values_list("user__email", flat=True))
