"""The audit log: who changed what, when, from where, from what to what. The database writes it, without secrets."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.apps import apps
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.formats import date_format

from headrace.portal.downloads import spreadsheet
from headrace.portal.request import PortalRequest, asked
from tenants.models import AuditEntry

PAGE, MOST = 50, 10_000
_HIDDEN = frozenset({"digest"})
_TIME = re.compile(r"\d{4}-\d\d-\d\dT")


@dataclass(frozen=True, slots=True)
class Shown:
    entry: AuditEntry
    what: str
    changes: list[tuple[str, str, str]]  # a field, what it was, what it became


def log(request: PortalRequest) -> HttpResponse:
    """The newest first, 50 at a time; `before` is the id after which the next page begins."""
    rows = AuditEntry.objects.of(request.tenant.pk).order_by("-id")
    who, before = asked(request, "who"), request.GET.get("before", "")
    if who:
        rows = rows.filter(who=who)
    if before.isascii() and before.isdecimal() and len(before) < 19:
        rows = rows.filter(pk__lt=int(before))
    found = list(rows[: PAGE + 1])
    context = {
        "entries": [_shown(entry) for entry in found[:PAGE]],
        "older": found[PAGE - 1].pk if len(found) > PAGE else None,
        "who": who,
    }
    return render(request, "portal/audit.html", context)


def export(request: PortalRequest) -> HttpResponse:
    """The newest 10,000 entries as CSV, times in UTC."""
    columns = ("at", "who", "origin", "action", "subject", "before", "after")
    entries = AuditEntry.objects.of(request.tenant.pk).order_by("-id")[:MOST].iterator(chunk_size=1000)
    name = f"audit-{request.tenant.slug}.csv"
    return spreadsheet(columns, map(_row, entries), documents=("before", "after"), name=name)


def _row(entry: AuditEntry) -> dict[str, Any]:
    at = entry.at.astimezone(UTC).isoformat(timespec="milliseconds")
    return {
        "at": at,
        **{name: getattr(entry, name) for name in ("who", "origin", "action", "subject")},
        "before": entry.before or None,
        "after": entry.after or None,
    }


def _shown(entry: AuditEntry) -> Shown:
    table, _, key = entry.subject.partition(" ")
    before, after = entry.before or {}, entry.after or {}
    names = sorted(name for name in {**before, **after} if before.get(name) != after.get(name) and name not in _HIDDEN)
    return Shown(
        entry,
        f"{_kind(table)} {key}",
        [(name.replace("_", " "), _text(before.get(name)), _text(after.get(name))) for name in names],
    )


def _kind(table: str) -> str:
    for model in apps.get_models():
        if model._meta.db_table == table:
            return str(model._meta.verbose_name)
    return table


def _text(value: Any) -> str:
    if value is None or value in ("", []):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return _moment(value) if isinstance(value, str) and _TIME.match(value) else str(value)


def _moment(text: str) -> str:
    """A time as the database writes one, as people read it, in the tenant's zone; a text that is none, as it is."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return text
    return date_format(timezone.localtime(at), "j M Y, H:i:s") if at.tzinfo else text
