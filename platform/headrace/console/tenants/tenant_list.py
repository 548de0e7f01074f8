"""The operators' list of tenants, with what each used of late and how its budgets stand."""

from typing import Any

import redis
from django.conf import settings
from django.contrib import admin
from django.db.models import Max, Sum
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.decorators import display
from unfold.views import ChangeList

from billing.budgets.balances import standings
from billing.models import Budget, RefusedHour, UsageHour
from headrace.console import money_cells
from headrace.console.billing.budgets import STATES
from headrace.console.cells import number
from headrace.console.overview import SPAN
from headrace.console.tenants.tenants import TenantAdmin
from tenants.models import Tenant

_WORST = ("used up", "warned", "rebuilding", "fine", "none")


class WithUse(ChangeList):
    """The page's tenants alone are looked up: one query for their use, one for what they were refused,
    one for their budgets, and Redis once."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        tenants = {tenant.pk: tenant for tenant in self.result_list}
        hours = UsageHour.objects.filter(hour__gte=timezone.now() - SPAN, tenant__in=tenants).order_by()
        sums = hours.values_list("tenant").annotate(
            Sum("requests"), Sum("cost"), Max("currency"), unpriced=UsageHour.total("unpriced")
        )
        use = {slug: rest for slug, *rest in sums}
        refusals = RefusedHour.objects.filter(hour__gte=timezone.now() - SPAN, tenant__in=tenants).order_by()
        refused = dict(refusals.values_list("tenant").annotate(Sum("requests")))
        states = _budget_states(list(tenants))
        for slug, tenant in tenants.items():
            requests, cost, currency, unpriced = use.get(slug, (0, 0, tenant.currency, 0))
            tenant.n_requests, tenant.n_refused = requests, refused.get(slug, 0)
            tenant.spent = (None if requests and unpriced >= requests and not cost else cost, currency)
            tenant.budgets_are = states.get(slug, "none")


def _budget_states(tenants: list[str]) -> dict[str, str]:
    """The worst of each tenant's budgets in force; "rebuilding" while Redis is away."""
    budgets = list(Budget.objects.filter(tenant__in=tenants, enabled=True))
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=1) as client:
            found = [(standing.budget, standing.percent) for standing in standings(client, budgets)]
    except redis.RedisError:
        found = [(budget, None) for budget in budgets]
    states: dict[str, str] = {}
    for budget, percent in found:
        is_over = percent is not None and percent >= 100
        is_near = percent is not None and any(percent >= mark for mark in budget.thresholds)
        state = "rebuilding" if percent is None else "used up" if is_over else "warned" if is_near else "fine"
        states[budget.tenant_id] = min(state, states.get(budget.tenant_id, "none"), key=_WORST.index)
    return states


class TenantList(TenantAdmin):
    list_display = (
        "slug", "name", "state", "requests_of_late", "refused_of_late", "cost_of_late", "budgets", "keys_count",
        "time_zone", "portal",
    )  # fmt: skip

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return WithUse

    @display(description="Requests, 24 h")
    def requests_of_late(self, tenant: Any) -> SafeString:
        return number(tenant.n_requests)

    @display(description="Refused, 24 h")
    def refused_of_late(self, tenant: Any) -> SafeString:
        return number(tenant.n_refused)

    @display(description="Cost, 24 h")
    def cost_of_late(self, tenant: Any) -> SafeString:
        return money_cells.cost(*tenant.spent)

    @display(description="Budgets", label={**STATES, "none": "info"})
    def budgets(self, tenant: Any) -> str:
        return str(tenant.budgets_are)

    @display(description="Portal")
    def portal(self, tenant: Tenant) -> SafeString:
        link = reverse("portal:overview", args=[tenant.pk])
        return format_html('<a class="hr-link" href="{}">Look, read-only</a>', link)


admin.site.unregister(Tenant)
admin.site.register(Tenant, TenantList)
