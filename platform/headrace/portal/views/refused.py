"""Refused: what budgets, limits and busy replicas kept from being asked, by reason, by time and by key."""

import json
from collections.abc import Iterator
from datetime import datetime

from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from billing.models import RefusedHour
from headrace.portal import rejections
from headrace.portal.access import May
from headrace.portal.downloads import spreadsheet
from headrace.portal.period import CHOICES, Period, period
from headrace.portal.request import PortalRequest, asked
from headrace.portal.views.budgets import key_names
from headrace.portal.views.charting import MOST_DRAWN, stacked

Row = dict[str, object]


def listing(request: PortalRequest) -> HttpResponse:
    span, rows = _asked(request)
    reasons, whose = rejections.by_reason(rows), rejections.by_whom(rows)
    context = {
        "span": span,
        "periods": CHOICES,
        "reasons": reasons,
        "total": sum(reason.requests for reason in reasons),
        "whose": whose,
        "keys": key_names(request, {line.key for line in whose}),
        "most": rejections.MOST if len(whose) == rejections.MOST else None,
        "chart": json.dumps(_chart(span, rows, reasons)) if reasons else "",
    }
    return render(request, "portal/refused.html", context)


def export(request: PortalRequest) -> HttpResponse:
    """One of the page's tables as CSV: by `reason`, by `time` (as its chart draws it), or by `key`.

    The keys are left out for those to whom they are not shown.
    """
    span, rows = _asked(request)
    when = "hour" if span.is_short else "day"
    tables = {
        "reason": (("code", "reason", "status", "requests"), _by_reason),
        "time": ((when, "code", "reason", "requests"), _by_time),
        "key": (("project", "key", "key_name", "code", "reason", "requests"), _by_key),
    }
    by = asked(request, "by")
    by = by if by in tables else "reason"
    columns, rows_of = tables[by]
    hidden = () if request.may(May.SEE_KEYS) else ("key", "key_name")
    shown = [name for name in columns if name not in hidden]
    name = f"refused-{request.tenant.slug}-{span.name}-by-{by}.csv"
    return spreadsheet(shown, rows_of(request, span, rows), numbers=("status", "requests"), name=name)


def _asked(request: PortalRequest) -> tuple[Period, QuerySet[RefusedHour]]:
    span = period(asked(request, "period"), request.calendar, timezone.now())
    return span, rejections.hours(request.tenant, span.start, span.end)


def _chart(span: Period, rows: QuerySet[RefusedHour], reasons: list[rejections.Reason]) -> dict[str, object]:
    cells = [(step, each.code, each.requests) for step, each in _course(span, rows)]
    drawn = [(reason.code, reason.meaning) for reason in reasons[:MOST_DRAWN]]
    return stacked(span, cells, drawn, unit="requests")


def _course(span: Period, rows: QuerySet[RefusedHour]) -> list[tuple[datetime, rejections.Reason]]:
    return rejections.by_time(rows, None if span.is_short else span.calendar)


def _by_reason(request: PortalRequest, span: Period, rows: QuerySet[RefusedHour]) -> Iterator[Row]:
    for each in rejections.by_reason(rows):
        yield {"code": each.code, "reason": each.meaning, "status": each.status, "requests": each.requests}


def _by_time(request: PortalRequest, span: Period, rows: QuerySet[RefusedHour]) -> Iterator[Row]:
    for step, each in _course(span, rows):
        when = {
            "hour": timezone.localtime(step).isoformat(timespec="minutes"),
            "day": span.calendar.date_at(step).isoformat(),
        }
        yield when | {"code": each.code, "reason": each.meaning, "requests": each.requests}


def _by_key(request: PortalRequest, span: Period, rows: QuerySet[RefusedHour]) -> Iterator[Row]:
    whose = rejections.by_whom(rows)
    names = key_names(request, {line.key for line in whose})
    for line in whose:
        whom = {"project": line.project, "key": line.key, "key_name": names.get(line.key, "")}
        reason = line.reason
        yield whom | {"code": reason.code, "reason": reason.meaning, "requests": reason.requests}
