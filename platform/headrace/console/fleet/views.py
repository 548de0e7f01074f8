"""The fleet page, what it asks for each two seconds, and the one thing it changes. Staff only (see urls.py)."""

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from engines.models import Replica
from headrace.console.fleet.rows import fleet


@require_GET
def page(request: HttpRequest) -> HttpResponse:
    may_drain = request.user.has_perm("engines.change_replica")
    context = admin.site.each_context(request) | {"title": "Fleet", "fleet": fleet(), "may_drain": may_drain}
    return render(request, "admin/fleet/page.html", context)


@require_GET
def state(request: HttpRequest) -> JsonResponse:
    return JsonResponse(fleet())


@require_POST
def drain(request: HttpRequest, replica: int) -> HttpResponse:
    """Have a replica drain (`wanted` 0) or serve again (1). The audit trail has who did it."""
    if not request.user.has_perm("engines.change_replica"):
        raise PermissionDenied
    row = get_object_or_404(Replica, pk=replica)
    row.enabled = request.POST.get("wanted") == "1"
    row.save(update_fields=["enabled"])
    said = "takes requests again" if row.enabled else "drains: it finishes what it runs and gets nothing new"
    messages.success(request, f"{row} {said}.")
    return redirect("fleet:page")
