"""Every page of the portal as a tenant's owner may open it, out of the table of addresses."""

from collections.abc import Callable

from django.urls import URLPattern, reverse

from billing.models import Budget, Invoice, InvoiceLine, SetBy, UsageRecord
from headrace.portal import urls
from headrace.portal.access import Rule, may
from tenants.models import ApiKey, ModelLimits, Project, Role, Tenant

PAGES = {pattern.name or "": pattern for pattern in urls.urlpatterns if "tenant" in pattern.pattern.converters}
# More that a page may be asked for, besides nothing: what reads the most.
FURTHER = {
    "overview": ("period=30d", "period=last-month"),
    "usage": ("period=30d&by=key", "period=30d&by=day", "period=yesterday&by=hour"),
    "requests": ("status=failed",),
    "keys": ("show=all&page=1",),
}
_THINGS: dict[str, Callable[[Tenant], object]] = {
    "tenant": lambda tenant: tenant.pk,
    "key": lambda tenant: ApiKey.objects.of(tenant).values_list("pk", flat=True).first(),
    "slug": lambda tenant: Project.objects.of(tenant).values_list("slug", flat=True).first(),
    "budget": lambda tenant: Budget.objects.of(tenant).filter(set_by=SetBy.TENANT).values_list("pk", flat=True).first(),
    "limits": lambda tenant: ModelLimits.objects.of(tenant).values_list("pk", flat=True).first(),
    "invoice": lambda tenant: _line(tenant).invoice_id,
    "position": lambda tenant: _line(tenant).position,
    "form": lambda tenant: "csv",
    "request_id": lambda tenant: UsageRecord.objects.of(tenant).values_list("pk", flat=True).first(),
}


def shown_to_owners() -> dict[str, URLPattern]:
    """The pages that are read, by name. One without a rule fails here."""
    found = {}
    for name, page in PAGES.items():
        rule = page.callback.rule  # type: ignore[attr-defined]
        assert isinstance(rule, Rule), name
        if rule.get is not None and may(Role.OWNER, rule.get):
            found[name] = page
    return found


def address(page: URLPattern, tenant: Tenant) -> str:
    """The page about something of the tenant's: a page of a kind of thing that is unknown here raises KeyError."""
    values = {name: _THINGS[name](tenant) for name in page.pattern.converters}
    return reverse(f"portal:{page.name}", kwargs=values)


def _line(tenant: Tenant) -> InvoiceLine:
    """The largest line of the tenant's largest document."""
    invoice = Invoice.objects.of(tenant).order_by("-total").first()
    assert invoice is not None, f"{tenant} has no invoice"
    line = invoice.lines.filter(kind=InvoiceLine.Kind.USAGE).order_by("-quantity").first()
    assert line is not None, f"{invoice} has no line"
    return line
