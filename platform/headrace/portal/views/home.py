"""Where somebody lands who logged in: his tenant, or the choice between several."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from headrace.portal.request import is_operator
from tenants.models import Member


@login_required
def home(request: HttpRequest) -> HttpResponse:
    """The one page of the portal that reads across tenants: the visitor's own memberships, by his id alone."""
    memberships = list(
        Member.objects.filter(user_id=request.user.pk or 0).select_related("tenant").order_by("tenant__name")
    )
    if not memberships and is_operator(request.user):
        return redirect("admin:index")
    if len(memberships) == 1 and "choose" not in request.GET:
        return redirect("portal:overview", memberships[0].tenant_id)
    context: dict[str, Any] = {"memberships": memberships}
    return render(request, "portal/home.html", context)
