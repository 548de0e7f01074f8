"""Cost per million tokens, with its chart. Staff only (see urls.py); reads, changes nothing."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any
from zoneinfo import ZoneInfo

from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from billing.amounts import telling
from billing.cost import hosted
from billing.cost.export import gap, totals
from billing.cost.report import report
from billing.cost.report_query import UNITS, Asked, default_span
from engines.models import Pool
from headrace.console.costs.chart import charts
from headrace.console.costs.table import rows
from headrace_core.currencies import check_currency
from headrace_core.time_zones import check_time_zone
from routing.models import Model

# A table is for reading; longer ones are for the command line.
MOST_LINES = 50
_LONGEST = {"hour": timedelta(days=31), "day": timedelta(days=400), "month": timedelta(days=4000)}


@require_GET
def page(request: HttpRequest) -> HttpResponse:
    """`?by=hour|day|month&from=&to=&pool=&model=&zone=&currency=&input=&output=&price_currency=`."""
    context = admin.site.each_context(request) | {
        "title": "Cost per million tokens",
        "units": UNITS,
        "pools": Pool.objects.values_list("name", flat=True),
        "models": Model.objects.values_list("name", flat=True),
        "given": request.GET,
        "by": "day",
        "zone": "UTC",
    }
    try:
        asked = _asked(request)
        found = report(asked)
        context |= {
            "by": asked.by,
            "zone": str(asked.zone),
            "start": asked.start.date().isoformat(),
            "end": (asked.end - timedelta(microseconds=1)).date().isoformat(),
            "rows": rows(found.lines[: -MOST_LINES - 1 : -1], asked.by),
            "is_cut": len(found.lines) > MOST_LINES,
            "charts": charts(found),
            "totals": [_total(each) for each in totals(found)],
            "gap": gap(found.gap_seconds),
            "missing": found.missing,
        }
    except (ValueError, ValidationError) as error:
        context["refusal"] = error.messages[0] if isinstance(error, ValidationError) else str(error)
    return render(request, "admin/costs/page.html", context)


def _asked(request: HttpRequest) -> Asked:
    """Raises ValueError or ValidationError with words for the reader."""
    given = request.GET
    by, name = given.get("by", "day"), given.get("zone") or "UTC"
    if by not in UNITS:
        raise ValueError("by is hour, day or month")
    check_time_zone(name)
    zone = ZoneInfo(name)
    start, end = default_span(by, datetime.now(UTC), zone)
    start = _day(given.get("from", ""), zone) or start
    if last := _day(given.get("to", ""), zone):
        end = datetime.combine(last.date() + timedelta(days=1), time(), zone)  # that day, too
    if start >= end:
        raise ValueError("The first day has to be before the last.")
    if end - start > _LONGEST[by]:
        raise ValueError(f"By the {by}, at most {_LONGEST[by].days} days are shown.")
    currency = given.get("currency", "").strip().upper() or None
    if currency:
        check_currency(currency)
    return Asked(start, end, by, zone, given.get("pool") or None, given.get("model") or None, currency, _hosted(given))


def _day(text: str, zone: ZoneInfo) -> datetime | None:
    if not text:
        return None
    try:
        return datetime.combine(date.fromisoformat(text), time(), zone)
    except ValueError:
        raise ValueError(f"{text} is no day, such as 2026-03-31.") from None


def _hosted(given: Any) -> hosted.Hosted | None:
    words = [given.get(name, "").strip() for name in ("input", "output")]
    if not all(words):
        return None
    currency = given.get("price_currency", "").strip().upper() or "USD"
    check_currency(currency)
    try:
        prices = [Decimal(word) for word in words]
    except InvalidOperation:
        raise ValueError("Prices are numbers, per million tokens.") from None
    if not all(price.is_finite() and 0 <= price < 10**9 and price == round(price, 6) for price in prices):
        raise ValueError("Prices have at most six decimal places, and are not negative.")
    return hosted.given(prices[0], prices[1], currency)


def _total(total: dict[str, Any]) -> dict[str, Any]:
    def money(name: str) -> str:
        return "unknown" if total[name] is None else telling(Decimal(total[name]), 2)

    return {
        "currency": total["currency"] or "no currency",
        "cost": money("cost"),
        "charged": money("charged"),
        "margin": money("margin"),
        "is_loss": total["margin"] is not None and Decimal(total["margin"]) < 0,
        "output": f"{total['output_tokens']:,}",
        "tokens": f"{total['tokens']:,}",
    }
