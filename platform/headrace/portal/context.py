"""What every portal template may ask: the tenant, the pages its visitor may open, and where else he belongs."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from headrace.portal.access import OPERATOR, May, may


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the navigation."""

    title: str
    icon: str
    link: str
    is_current: bool

    @property
    def icon_file(self) -> str:
        return f"portal/icons/{self.icon}.svg"


_PAGES = (
    ("Overview", "overview", "overview", May.SEE_USE),
    ("Usage", "usage", "usage", May.SEE_USE),
    ("Requests", "requests", "requests", May.SEE_USE),
    ("Playground", "playground", "playground", May.PLAY),
    ("Models", "models", "models", May.SEE_USE),
    ("API keys", "keys", "keys", May.SEE_KEYS),
    ("Budgets", "budgets", "budgets", May.SEE_BUDGETS),
    ("Invoices", "invoices", "invoices", May.SEE_INVOICES),
    ("Projects", "projects", "projects", May.SEE_SETTINGS),
    ("Members", "members", "members", May.SEE_PEOPLE),
    ("Audit log", "audit", "audit", May.SEE_AUDIT),
    ("Settings", "settings", "settings", May.SEE_SETTINGS),
)


def portal(request: HttpRequest) -> dict[str, Any]:
    """Django's context processor. Outside of a tenant's pages it adds nothing."""
    tenant, role = getattr(request, "tenant", None), getattr(request, "role", "")
    if tenant is None:
        return {}
    here = request.resolver_match.url_name if request.resolver_match else ""
    entries = [
        Entry(title, icon, reverse(f"portal:{name}", args=[tenant.slug]), (here or "").partition("-")[0] == name)
        for title, icon, name, what in _PAGES
        if may(role, what)
    ]
    allowed = {what.name.lower(): may(role, what) for what in May}
    return {
        "tenant": tenant,
        "time_zone": timezone.get_current_timezone_name(),
        "role": role,
        "is_operator": role == OPERATOR,
        "pages": entries,
        "may": allowed,
    }
