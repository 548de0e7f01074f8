"""Limits: what may be asked for in a minute, by whom; the tenant's own, and what operators set below, are theirs."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from headrace.portal.access import May
from headrace.portal.denials import Refused, set_by_operator
from headrace.portal.forms.limits import ModelLimitsForm
from headrace.portal.request import PortalRequest
from tenants.limits import remove_model_limits
from tenants.models import LIMIT_FIELDS, ApiKey, ModelLimits, Project, Tenant

MOST = 200  # rows of one table


def listing(request: PortalRequest) -> HttpResponse:
    """The tenant's, those of projects, of the keys that have any, and per model."""
    tenant = request.tenant
    keys = ApiKey.objects.of(tenant).filter(_any_limit(), revoked_at=None).select_related("project")
    per_model = _seen(request).order_by("project", "key", "model")
    context = {
        "projects": list(Project.objects.of(tenant).order_by("slug")[:MOST]),
        "keys": list(keys.order_by("project__slug", "name")[:MOST]) if request.may(May.SEE_KEYS) else None,
        "per_model": list(per_model[:MOST]),
        "names": _key_names(tenant, [row.key for row in per_model[:MOST] if row.key]),
        "most": MOST,
    }
    return render(request, "portal/limits.html", context)


def create(request: PortalRequest) -> HttpResponse:
    form = ModelLimitsForm(request.tenant, request.POST or None, sees_projects=request.may(May.CHANGE_PROJECTS))
    if request.method == "POST" and form.is_valid():
        messages.success(request, f"The limits for {form.write().model} are in force within a second.")
        return redirect("portal:budgets-limits", request.tenant.slug)
    return render(request, "portal/limits_form.html", {"form": form})


def change(request: PortalRequest, limits: int) -> HttpResponse:
    row = _limits(request, limits)
    form = ModelLimitsForm(request.tenant, request.POST or None, instance=row)
    if request.method == "POST" and form.is_valid():
        messages.success(request, f"The limits for {form.write().model} are in force within a second.")
        return redirect("portal:budgets-limits", request.tenant.slug)
    names = _key_names(request.tenant, [row.key] if row.key else [])
    return render(request, "portal/limits_form.html", {"form": form, "limits": row, "names": names})


def remove(request: PortalRequest, limits: int) -> HttpResponse:
    row = _limits(request, limits)
    if row.ceilings:  # an operator set some of them
        raise _set_by_operator(request, row)
    remove_model_limits(row=row)
    messages.success(request, f"The limits for {row.model} are gone. Those for all models hold on.")
    return redirect("portal:budgets-limits", request.tenant.slug)


def _limits(request: PortalRequest, pk: int) -> ModelLimits:
    """A project's are for those who may change projects, a key's for those who may change keys (the page's rule)."""
    row = _seen(request).filter(pk=pk).first()
    if row is None:
        raise Http404
    if not row.project and not row.key:  # of all the tenant
        raise _set_by_operator(request, row)
    if row.project and not request.may(May.CHANGE_PROJECTS):
        raise PermissionDenied
    return row


def _set_by_operator(request: PortalRequest, row: ModelLimits) -> Refused:
    there = reverse("portal:budgets-limits", args=[request.tenant.slug])
    return set_by_operator(f"These limits for {row.model} were", (there, "See all limits"))


def _seen(request: PortalRequest) -> QuerySet[ModelLimits]:
    rows = ModelLimits.objects.of(request.tenant)
    return rows if request.may(May.SEE_KEYS) else rows.filter(key="")


def _any_limit() -> Q:
    condition = Q()
    for name in LIMIT_FIELDS:
        condition |= Q(**{f"{name}__isnull": False})
    return condition


def _key_names(tenant: Tenant, ids: list[str]) -> dict[str, str]:
    rows = ApiKey.objects.of(tenant).filter(pk__in=ids).select_related("project")
    return {key.pk: f"{key.project.slug}/{key.name}" for key in rows}
