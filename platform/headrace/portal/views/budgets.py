"""Budgets as they stand: spent, held by what runs now, and left; and who was told of what."""

import redis
from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render

from billing.budgets.standing import Standing, standings
from billing.models import Budget, BudgetAlert
from headrace.portal.request import PortalRequest
from tenants.models import ApiKey

ALERTS = 50


def budgets(request: PortalRequest) -> HttpResponse:
    """Redis away: the budgets without their spending, and a word on it; never as if nothing were spent."""
    found = list(Budget.objects.of(request.tenant).filter(enabled=True).select_related("tenant").order_by("name"))
    stand: list[Standing] = []
    is_away = False
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=1, socket_connect_timeout=1) as client:
            stand = standings(client, found)
    except redis.RedisError:
        is_away = True
    alerts = BudgetAlert.objects.filter(tenant_id=request.tenant.pk).select_related("budget").order_by("-id")
    context = {
        "standings": stand,
        "budgets": found,
        "is_away": is_away,
        "alerts": list(alerts[:ALERTS]),
        "keys": dict(ApiKey.objects.filter(pk__in={each.key for each in found}).values_list("pk", "name")),
    }
    return render(request, "portal/budgets.html", context)
