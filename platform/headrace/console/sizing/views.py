"""The sizing page and its recalculation. Staff only (see urls.py); reads, changes nothing."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.http import require_GET

from engines.sizing import reasoning
from engines.sizing.alternatives import explore
from engines.sizing.answer import Answer, solve
from engines.sizing.asking import ask
from engines.sizing.charts import charts
from engines.sizing.document import document
from engines.sizing.errors import SizingError
from engines.sizing.report import seconds
from headrace.console.sizing import results
from headrace.console.sizing.controls import ASKABLE, START, groups
from headrace.console.sizing.usage import Measured, measure

LEDGER_DAYS = "14"


@require_GET
def page(request: HttpRequest) -> HttpResponse:
    """The page with its first answer. `?from_usage=NAME&days=N` fills the workload from the ledger."""
    given = START | _given(request)
    context = admin.site.each_context(request) | {
        "title": "Sizing",
        "from_usage": request.GET.get("from_usage", ""),
        "days": request.GET.get("days", LEDGER_DAYS),
        "told": [],
        "start": {},
    }
    try:
        if measured := _measured(request):
            given |= measured.fields()
            context["told"] = measured.told()
        found = solve(ask(given))
        context |= _shown(found)
        context["start"] = charts(found)
    except SizingError as error:
        context["refusal"] = str(error)
    context["groups"] = groups(given)
    return render(request, "admin/sizing/page.html", context)


@require_GET
def answer(request: HttpRequest) -> JsonResponse:
    """`html` of the results, `charts` as numbers and the `document`; 400 with `error` where the question is refused."""
    try:
        found = solve(ask(_given(request)))
    except SizingError as error:
        return _refused(error)
    html = render_to_string("admin/sizing/results.html", _shown(found), request)
    return JsonResponse({"html": html, "charts": charts(found), "document": document(found)})


@require_GET
def levers(request: HttpRequest) -> JsonResponse:
    """`html` of what each lever would change; 400 with `error`."""
    try:
        found = solve(ask(_given(request)))
        alternatives = explore(found)
    except SizingError as error:
        return _refused(error)
    rows = [(each, seconds(each.ttft_p99), seconds(each.tpot_p99)) for each in alternatives]
    context = {"alternatives": rows, "gpus": found.gpus}
    return JsonResponse({"html": render_to_string("admin/sizing/levers.html", context, request)})


def _given(request: HttpRequest) -> dict[str, Any]:
    return {name: value for name, value in request.GET.items() if name in ASKABLE and value != ""}


def _measured(request: HttpRequest) -> Measured | None:
    name = request.GET.get("from_usage", "").strip()
    if not name:
        return None
    try:
        days = float(request.GET.get("days") or LEDGER_DAYS)
    except ValueError:
        days = float("nan")  # refused by its name below
    return measure(name, days=days)


def _shown(found: Answer) -> dict[str, Any]:
    return {
        "sentence": document(found)["verdict"]["sentence"],
        "tiles": results.tiles(found),
        "reasons": reasoning.steps(found),
        "notes": results.notes(found),
    }


def _refused(error: SizingError) -> JsonResponse:
    return JsonResponse({"error": {"code": error.code, "message": str(error)}}, status=400)
