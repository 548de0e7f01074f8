"""The operators' admin: Unfold's site, whose every write is one transaction attributed to its user."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import SimpleTemplateResponse
from django.urls import reverse
from django.utils.functional import SimpleLazyObject
from unfold.sites import UnfoldAdminSite

from headrace.bad_input import refused_as_bad
from headrace.console import overview
from headrace.console.quick_lists import quicken
from headrace_core import audit

View = Callable[..., HttpResponse]
quicken()
_READING = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


def _rendered(response: HttpResponse) -> HttpResponse:
    """Fields of a form ask the database as they are drawn."""
    return response.render() if isinstance(response, SimpleTemplateResponse) else response


class OperatorSite(UnfoldAdminSite):
    index_title = "Overview"
    index_template = "admin/overview.html"

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        def attributed(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            with refused_as_bad(request):
                if request.method in _READING:
                    return _rendered(view(request, *args, **kwargs))
                with audit.acting(who=request.user.get_username(), origin=audit.origin_of(request)):
                    return _rendered(view(request, *args, **kwargs))

        admin_view: View = super().admin_view(attributed, cacheable)
        return admin_view

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> Any:
        """Made when it is looked at: every page is given one, with two addresses a model, and the sidebar is ours."""
        return SimpleLazyObject(partial(super().get_app_list, request, app_label))

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """People have one door: the admin's own would pass over its limits and its second factor."""
        if self.has_permission(request):
            return redirect("admin:index")
        if request.user.is_authenticated:
            raise PermissionDenied
        return redirect_to_login(request.GET.get("next") or reverse("admin:index"))

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        response: HttpResponse = super().index(request, (extra_context or {}) | {"overview": overview.today()})
        return response
