"""Every address that the screens answer at, with parameters that exist and parameters that cannot be anything's."""

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.urls import NoReverseMatch, URLPattern, URLResolver, get_resolver, reverse

# Of every kind that breaks something somewhere: empty, too long, too large, no number, other alphabets, half a
# character, what ends a text, a path, a query or a format, and times before and after what a database keeps.
HOSTILE = (
    "", " ", "0", "-1", "1.5", "1e400", "NaN", "Infinity", "9" * 30, "9223372036854775808", "x" * 3000, "a\x00b", "\n",
    "\ud83d", "\u202e", "\u0663", "%", "%s", "{}", "{{7*7}}", "'", '"><script>', "../..", "a/b", "_5F", "null", "true",
    "[]", "0001-01-01", "9999-12-31T23:59:59", "2026-02-30", "2026-13-01T25:61", "\\", "acme", "label:", "label:\x00",
)  # fmt: skip
# Names that no form on a page shows, but that Django's, allauth's or our own views read.
NAMES = (
    "page", "q", "before", "period", "by", "o", "p", "e", "all", "_popup", "_to_field", "_changelist_filters", "next",
    "choose", "label", "value", "status", "key", "model", "project", "term", "app_label", "model_name", "field_name",
    "id__exact", "tenant__exact", "tenant_id__exact", "admitted_at_from_0", "admitted_at_from_1", "ot", "format",
    "hour__gte", "pk__in", "id__in",
)  # fmt: skip


def addresses(resolver: URLResolver | None = None, space: str = "") -> Iterator[tuple[str, URLPattern]]:
    """Name and pattern of each address that has a name."""
    for each in (resolver or get_resolver()).url_patterns:
        if isinstance(each, URLResolver):
            yield from addresses(each, f"{each.namespace}:" if each.namespace else space)
        elif each.name:
            yield space + each.name, each


def link(name: str, parameters: dict[str, Any]) -> str | None:
    """The address; None where the pattern itself takes no such parameter."""
    try:
        return reverse(name, kwargs=parameters)
    except (NoReverseMatch, UnicodeEncodeError):
        return None


def existing(name: str, parameter: str, tenant: str) -> list[Any]:
    """What there is in the database for this parameter of this address."""
    if parameter == "tenant":
        return [tenant]
    if name.startswith("admin:"):
        return [row.pk for row in _rows(name)[:1]]
    return []


def _rows(name: str) -> list[Model]:
    for model in admin.site._registry:
        if name.startswith(f"admin:{model._meta.app_label}_{model._meta.model_name}_"):
            return list(model._default_manager.all()[:1])
    return []
