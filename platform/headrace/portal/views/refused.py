"""Refused: what budgets, limits and busy replicas kept from being asked, by reason, by time and by key."""

import csv
import io
import json
from collections.abc import Iterable, Sequence

from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from billing.exports.cells import text_cell
from billing.models import RefusedHour
from headrace.portal import refused
from headrace.portal.access import May
from headrace.portal.period import CHOICES, Period, period
from headrace.portal.request import PortalRequest, asked
from headrace.portal.views.budgets import key_names
from headrace.portal.views.charting import MOST_DRAWN, stacked

Table = Iterable[Sequence[object]]  # its head first


def listing(request: PortalRequest) -> HttpResponse:
    span, rows = _asked(request)
    reasons, whose = refused.by_reason(rows), refused.by_whom(rows)
    context = {
        "span": span,
        "periods": CHOICES,
        "reasons": reasons,
        "total": sum(reason.requests for reason in reasons),
        "whose": whose,
        "keys": key_names(request, {line.key for line in whose}),
        "most": refused.MOST if len(whose) == refused.MOST else None,
        "chart": json.dumps(_chart(span, rows, reasons)) if reasons else "",
    }
    return render(request, "portal/refused.html", context)


def export(request: PortalRequest) -> HttpResponse:
    """One of the page's tables as CSV: by `reason`, by `time` (as its chart draws it), or by `key`."""
    span, rows = _asked(request)
    tables = {"reason": _by_reason, "time": _by_time, "key": _by_key}
    by = asked(request, "by")
    by = by if by in tables else "reason"
    text = io.StringIO()
    for line in tables[by](request, span, rows):
        csv.writer(text).writerow([text_cell(each) if isinstance(each, str) else each for each in line])
    response = HttpResponse(text.getvalue(), content_type="text/csv; charset=utf-8")
    name = f"refused-{request.tenant.slug}-{span.name}-by-{by}.csv"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _asked(request: PortalRequest) -> tuple[Period, QuerySet[RefusedHour]]:
    span = period(asked(request, "period"), request.tenant.time_zone, timezone.now())
    return span, refused.hours(request.tenant, span.start, span.end)


def _chart(span: Period, rows: QuerySet[RefusedHour], reasons: list[refused.Reason]) -> dict[str, object]:
    cells = [(step, each.code, each.requests) for step, each in refused.by_time(rows, by_hour=span.is_short)]
    drawn = [(reason.code, reason.meaning) for reason in reasons[:MOST_DRAWN]]
    return stacked(span, cells, drawn, unit="requests")


def _by_reason(request: PortalRequest, span: Period, rows: QuerySet[RefusedHour]) -> Table:
    reasons = refused.by_reason(rows)
    yield ["code", "reason", "status", "requests"]
    yield from ([each.code, each.meaning, each.status, each.requests] for each in reasons)
    yield ["total", "", "", sum(each.requests for each in reasons)]


def _by_time(request: PortalRequest, span: Period, rows: QuerySet[RefusedHour]) -> Table:
    found = refused.by_time(rows, by_hour=span.is_short)
    yield ["hour" if span.is_short else "day", "code", "reason", "requests"]
    for step, each in found:
        local = timezone.localtime(step)
        when = local.isoformat(timespec="minutes") if span.is_short else local.date().isoformat()
        yield [when, each.code, each.meaning, each.requests]
    yield ["total", "", "", sum(each.requests for _, each in found)]


def _by_key(request: PortalRequest, span: Period, rows: QuerySet[RefusedHour]) -> Table:
    """Without the keys for those to whom they are not shown."""
    whose = refused.by_whom(rows)
    names, sees_keys = key_names(request, {line.key for line in whose}), request.may(May.SEE_KEYS)
    yield ["project", *(["key", "key_name"] if sees_keys else []), "code", "reason", "requests"]
    for line in whose:
        key = [line.key, names.get(line.key, "")] if sees_keys else []
        yield [line.project, *key, line.reason.code, line.reason.meaning, line.reason.requests]
