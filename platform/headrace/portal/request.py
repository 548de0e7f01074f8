"""From a request to a tenant's page: who asks, in which role, under which rule, in whose transaction."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseNotAllowed
from django.shortcuts import render
from django.urls import URLPattern, path, register_converter
from django.urls.converters import StringConverter
from django.utils import timezone

from billing.periods import Calendar, calendar_of
from headrace.portal.access import OPERATOR, May, Rule, may
from headrace.portal.denials import operator_looks
from headrace.portal.rows import rows_of
from headrace_core import audit
from headrace_core.time_zones import zone_named
from tenants.models import Member, OperatorVisit, Tenant
from tenants.models.names import SLUG_PATTERN

P = ParamSpec("P")


class SlugConverter(StringConverter):
    regex = SLUG_PATTERN.strip("^$")


class ProjectConverter(StringConverter):
    """A project's slug beside addresses of fixed words: one that is such a word is written with a dash before it, with
    which no slug begins."""

    regex = f"-?{SLUG_PATTERN.strip('^$')}"
    words = frozenset({"new"})

    def to_python(self, value: str) -> str:
        slug = value.removeprefix("-")
        if (value == slug) == (slug in self.words):
            raise ValueError(value)
        return slug

    def to_url(self, value: str) -> str:
        return f"-{value}" if value in self.words else value


class KeyIdConverter(StringConverter):
    regex = "[0-9A-Za-z]{12}"


register_converter(SlugConverter, "slug_of")
register_converter(ProjectConverter, "project")
register_converter(KeyIdConverter, "key_id")


class PortalRequest(HttpRequest):
    """A request that passed its page's rule."""

    user: User
    tenant: Tenant
    role: str
    may: Callable[[May], bool]
    calendar: Calendar


View = Callable[Concatenate[PortalRequest, P], HttpResponseBase]


def page(route: str, view: View[...], name: str, get: May | None, post: May | None = None) -> URLPattern:
    """A page below `/t/<tenant>/`: what its methods ask for stands beside its address."""
    return path(f"t/<slug_of:tenant>/{route}", guarded(view, Rule(get, post)), name=name)


def guarded(view: View[...], rule: Rule) -> Callable[..., HttpResponseBase]:
    """`view` behind `rule`. Strangers are sent to log in; who is no member learns not even that the tenant exists."""

    @wraps(view)
    def guard(request: HttpRequest, tenant: str, **kwargs: Any) -> HttpResponseBase:
        wanted = rule.of(request.method or "")
        if not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        with rows_of(tenant, who=request.user.get_username(), origin=audit.origin_of(request)):
            entered = _enter(request, tenant)
            if entered.tenant.is_suspended and entered.role != OPERATOR:
                return render(request, "errors/suspended.html", {"tenant": entered.tenant}, status=403)
            if wanted is None:
                return HttpResponseNotAllowed(rule.methods)
            if not may(entered.role, wanted):
                raise operator_looks() if entered.role == OPERATOR else PermissionDenied
            with timezone.override(zone_named(entered.calendar.time_zone_at(timezone.now()))):
                return view(entered, **kwargs)

    guard.rule = rule  # type: ignore[attr-defined]  # for the test that reads the table of addresses
    return guard


def asked(request: HttpRequest, name: str) -> str:
    """A parameter of the address as it may be looked for: without what no row can hold."""
    return _clean(request.GET.get(name, ""))


def sent(request: HttpRequest, name: str) -> str:
    """A field of a form that is none of Django's, likewise."""
    return _clean(request.POST.get(name, ""))


def _clean(text: str) -> str:
    return text.replace("\x00", "").strip()[:200]


def is_operator(user: Any) -> bool:
    return bool(user.is_staff and user.has_perm("tenants.view_tenant"))


def _enter(request: Any, slug: str) -> PortalRequest:
    tenant = Tenant.objects.filter(pk=slug).first()
    member = Member.objects.of(slug).filter(user_id=request.user.pk).first()
    if tenant is None or (member is None and not is_operator(request.user)):
        raise Http404
    request.calendar = calendar_of(slug)
    request.tenant, request.role = tenant, member.role if member else OPERATOR
    request.may = lambda what: may(request.role, what)
    if member is None:
        _note_visit(slug, request)
    entered: PortalRequest = request
    return entered


def _note_visit(tenant: str, request: Any) -> None:
    """Once an hour, in the tenant's audit trail; through the platform's connection, so that no tenant can forge it."""
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    visit = OperatorVisit(tenant=tenant, operator=request.user.get_username(), hour=hour)
    visits = OperatorVisit.objects.using("default")
    if not visits.filter(tenant=tenant, operator=visit.operator, hour=hour).exists():
        with audit.acting(who=visit.operator, origin=audit.origin_of(request)):
            visits.bulk_create([visit], ignore_conflicts=True)
