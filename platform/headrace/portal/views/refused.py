"""Refused: what budgets, limits and busy replicas kept from being asked, by reason and by key."""

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from headrace.portal import refused
from headrace.portal.period import CHOICES, period
from headrace.portal.request import PortalRequest, asked
from headrace.portal.views.budgets import key_names


def listing(request: PortalRequest) -> HttpResponse:
    span = period(asked(request, "period"), request.tenant.time_zone, timezone.now())
    rows = refused.hours(request.tenant, span.start, span.end)
    reasons, whose = refused.by_reason(rows), refused.by_whom(rows)
    context = {
        "span": span,
        "periods": CHOICES,
        "reasons": reasons,
        "total": sum(reason.requests for reason in reasons),
        "whose": whose,
        "keys": key_names(request, {line.key for line in whose}),
        "most": refused.MOST if len(whose) == refused.MOST else None,
    }
    return render(request, "portal/refused.html", context)
