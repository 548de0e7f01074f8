"""The first page: what was used and what it cost, against the span before, by model and by project."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from billing.amounts import spent
from billing.models import Budget, RefusedHour, UsageHour
from headrace import quantities
from headrace.portal import figures, rejections, spending
from headrace.portal.access import May
from headrace.portal.endpoint import api_base
from headrace.portal.forecast import Forecast, forecasts
from headrace.portal.period import CHOICES, Period, period
from headrace.portal.request import PortalRequest
from headrace.portal.rollups import rollups
from headrace.portal.views.budgets import key_names
from headrace.portal.views.charting import chart
from headrace.portal.views.models import offers_of, usual
from tenants.models import ApiKey, Project

RECENT = timedelta(days=7)  # that latencies are taken from, at most
BUDGETS = 4  # shown, those nearest to their end


@dataclass(frozen=True, slots=True)
class Card:
    """One figure. `parts` are what it is made of: a name and its amount."""

    title: str
    value: str
    detail: str
    change: str = ""
    parts: tuple[tuple[str, str], ...] = ()


def overview(request: PortalRequest) -> HttpResponse:
    tenant, now = request.tenant, timezone.now()
    if not UsageHour.objects.of(tenant).exists():
        return render(request, "portal/first_steps.html", _first_steps(request))
    span = period(request.GET.get("period", ""), request.calendar, now)
    rows = rollups(tenant, span.start, span.end, by_hour=span.is_short)
    course, (models, projects) = figures.course_and_groups(rows, "model", "project")
    current = figures.added("", models)
    previous = figures.total(rollups(tenant, span.before, span.before_end))
    latency = figures.latency(tenant, max(span.start, now - RECENT))
    turned_away = rejections.total(rejections.hours(tenant, span.start, span.end))
    context = {
        "span": span,
        "periods": CHOICES,
        "cards": _cards(tenant.currency, current, previous, latency, turned_away),
        "refused": turned_away,
        "measured": latency.requests,
        "models": models,
        "projects": projects,
        "budgets": (budgets := _budgets(request, now)),
        "keys": key_names(request, {one.budget.key for one, _ in budgets}),
        "unpriced": current.unpriced,
        "chart": json.dumps(_chart(span, course)),
    }
    return render(request, "portal/overview.html", context)


def _budgets(request: PortalRequest, now: datetime) -> list[tuple[spending.Shown, Forecast | None]]:
    """Those in force that are nearest to their end, with where they go."""
    if not request.may(May.SEE_BUDGETS):
        return []
    enabled = Budget.objects.of(request.tenant).filter(enabled=True).select_related("tenant").order_by("name")
    shown = spending.shown(enabled[: spending.MOST], now)
    nearest = sorted(shown, key=lambda one: -(one.standing.percent or 0))[:BUDGETS]
    return list(zip(nearest, forecasts(request.tenant, nearest, now), strict=True))


def _cards(
    currency: str, now: figures.Figures, before: figures.Figures, latency: figures.Latency, turned_away: int
) -> list[Card]:
    cost = now.amount
    per_million = 1_000_000 * now.cost / now.tokens if cost is not None and now.tokens else None
    return [
        Card(
            "Cost",
            spent(cost, currency),
            f"{spent(before.amount, currency)} before",
            quantities.change(now.cost, before.cost) if cost is not None else "",
            (
                ("per million tokens", spent(per_million, currency) if now.tokens else "\u2013"),
                ("requests without a price", quantities.count(now.unpriced)),
            ),
        ),
        Card(
            "Requests",
            quantities.count(now.requests),
            f"{quantities.count(before.requests)} before",
            quantities.change(now.requests, before.requests),
            (
                ("failed", f"{quantities.count(now.errors)}, {quantities.share(now.errors, now.requests)}"),
                (
                    "left by their caller",
                    f"{quantities.count(now.cancelled)}, {quantities.share(now.cancelled, now.requests)}",
                ),
                ("refused beside them", quantities.count(turned_away)),
            ),
        ),
        Card(
            "Tokens",
            quantities.count(now.tokens),
            f"{quantities.count(before.tokens)} before",
            quantities.change(now.tokens, before.tokens),
            (
                ("uncached input", quantities.count(now.uncached_tokens)),
                (
                    f"cached input, {quantities.share(now.cached_input_tokens, now.input_tokens)}",
                    quantities.count(now.cached_input_tokens),
                ),
                ("output", quantities.count(now.output_tokens)),
            ),
        ),
        Card(
            "Time to the first token",
            quantities.duration(latency.ttft_p50),
            "for the median request",
            parts=(
                ("99 % within", quantities.duration(latency.ttft_p99)),
                ("next tokens, median", quantities.duration(latency.tpot_p50)),
                ("next tokens, 99 % within", quantities.duration(latency.tpot_p99)),
            )
            if latency.ttft_p50 is not None
            else (),
        ),
    ]


def _chart(span: Period, lines: list[figures.Figures]) -> dict[str, object]:
    series = [
        ("Uncached input", [line.uncached_tokens for line in lines]),
        ("Cached input", [line.cached_input_tokens for line in lines]),
        ("Output", [line.output_tokens for line in lines]),
    ]
    return chart(span, [line.name for line in lines], series, unit="tokens")


def _first_steps(request: PortalRequest) -> dict[str, object]:
    return {
        "has_key": ApiKey.objects.of(request.tenant).exists(),
        "has_projects": Project.objects.of(request.tenant).exists(),
        "model": chosen.model.name if (chosen := usual(offers_of(request.tenant))) else "",
        "base": api_base(request),
        "is_refused": RefusedHour.objects.filter(tenant=request.tenant.pk).exists(),
    }
