"""Budgets: how each stands, who used it, who was told; made and changed by those who may."""

from decimal import Decimal

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from billing.models import Budget, BudgetAlert, SetBy
from headrace.portal import spending
from headrace.portal.access import May
from headrace.portal.denials import set_by_operator
from headrace.portal.forecast import forecasts
from headrace.portal.forms.budgets import BudgetForm
from headrace.portal.request import PortalRequest
from tenants.models import ApiKey, Tenant

PAGE = 50
_DIMENSIONS = (("project", "project"), ("key", "API key"), ("model", "model"))


def listing(request: PortalRequest) -> HttpResponse:
    """Those in force first, by name."""
    found = list(_of(request.tenant).order_by("-enabled", "name")[: spending.MOST])
    now = timezone.now()
    shown = spending.shown(found, now)
    context = {
        "shown": list(zip(shown, forecasts(request.tenant, shown, now), strict=True)),
        "keys": key_names(request, {budget.key for budget in found}),
        "most": spending.MOST if len(found) == spending.MOST else None,
    }
    return render(request, "portal/budgets.html", context)


def create(request: PortalRequest) -> HttpResponse:
    form = BudgetForm(request.tenant, request.POST or None, sees_keys=request.may(May.SEE_KEYS))
    if request.method == "POST" and form.is_valid():
        budget = form.write()
        messages.success(request, f"{budget.name} is in force within a second, and counts its whole present period.")
        return redirect("portal:budgets-one", request.tenant.slug, budget.pk)
    return render(request, "portal/budget_form.html", {"form": form})


def one(request: PortalRequest, budget: int) -> HttpResponse:
    row = _budget(request, budget)
    now = timezone.now()
    [shown] = spending.shown([row], now)
    tables = [
        (title, by, spending.used_by(shown, by))
        for by, title in _DIMENSIONS
        if not getattr(row, by) and (by != "key" or request.may(May.SEE_KEYS))
    ]
    named = {line.name for _, by, lines in tables if by == "key" for line in lines}
    context = {
        "one": shown,
        "forecast": forecasts(request.tenant, [shown], now)[0],
        "tables": tables,
        "keys": key_names(request, {*named, row.key}),
        "alerts": list(_alerts(request.tenant).filter(budget=row)[:PAGE]),
        "adjustments": [
            (each, Decimal(each.nano).scaleb(-9))
            for each in row.adjustments.filter(window_start=shown.standing.window.start)[:PAGE]
        ],
    }
    return render(request, "portal/budget.html", context)


def change(request: PortalRequest, budget: int) -> HttpResponse:
    row = _budget(request, budget)
    if row.set_by != SetBy.TENANT:
        there = reverse("portal:budgets-one", args=[request.tenant.slug, row.pk])
        raise set_by_operator(f"The budget {row.name} was", (there, f"See {row.name}"))
    form = BudgetForm(request.tenant, request.POST or None, instance=row, sees_keys=request.may(May.SEE_KEYS))
    if request.method == "POST" and form.is_valid():
        form.write()
        messages.success(request, f"{row.name} is saved. Every process obeys within a second.")
        return redirect("portal:budgets-one", request.tenant.slug, row.pk)
    return render(request, "portal/budget_form.html", {"form": form, "budget": _budget(request, budget)})


def alerts(request: PortalRequest) -> HttpResponse:
    """Who was told of what, newest first; `before` is the id after which the next page begins."""
    rows, before = _alerts(request.tenant), request.GET.get("before", "")
    if before.isascii() and before.isdecimal() and len(before) < 19:
        rows = rows.filter(pk__lt=int(before))
    found = list(rows[: PAGE + 1])
    older = found[PAGE - 1].pk if len(found) > PAGE else None
    context = {"alerts": found[:PAGE], "older": older, "has_budget": bool(found) or _of(request.tenant).exists()}
    return render(request, "portal/budget_alerts.html", context)


def _alerts(tenant: Tenant) -> QuerySet[BudgetAlert]:
    rows = BudgetAlert.objects.filter(tenant=tenant).select_related("budget")
    return rows.prefetch_related("notices", "notices__endpoint").order_by("-id")


def _of(tenant: Tenant) -> QuerySet[Budget]:
    return Budget.objects.of(tenant).select_related("tenant")


def _budget(request: PortalRequest, pk: int) -> Budget:
    row = _of(request.tenant).filter(pk=pk).first()
    if row is None:
        raise Http404
    return row


def key_names(request: PortalRequest, ids: set[str]) -> dict[str, str]:
    """Finance reads of a key's budget, not of the key."""
    if not request.may(May.SEE_KEYS):
        return dict.fromkeys(ids, "one API key")
    rows = ApiKey.objects.of(request.tenant).filter(pk__in=[each for each in ids if each]).select_related("project")
    return {key.pk: f"{key.project.slug}/{key.name}" for key in rows}
