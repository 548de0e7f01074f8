"""The settlement page, which asks for itself anew while somebody looks. Staff only (see urls.py); changes nothing."""

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from headrace.console.settlement.sections import sections


@require_GET
def page(request: HttpRequest) -> HttpResponse:
    found, problem = sections()
    context = admin.site.each_context(request) | {"title": "Settlement", "sections": found, "problem": problem}
    return render(request, "admin/settlement/page.html", context)
