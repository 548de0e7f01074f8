"""The playground: the browser calls the API itself, with a key of its own for a quarter of an hour."""

import json

from django.forms import Form
from django.http import HttpResponse, JsonResponse
from django.shortcuts import render

from billing.models import Price
from headrace.form_errors import refusals_to
from headrace.portal.playing import LIFE, playground_key
from headrace.portal.request import PortalRequest, asked, sent
from headrace.portal.views.models import offers_of, usual
from tenants.models import Project


def playground(request: PortalRequest) -> HttpResponse:
    offers = offers_of(request.tenant)
    rates = {offer.model.name: _rates(offer.price) for offer in offers if offer.price}
    first = usual(offers)
    context = {
        "offers": offers,
        "wanted": asked(request, "model") or (first.model.name if first else ""),
        "projects": list(Project.objects.of(request.tenant).order_by("slug")),
        "rates": json.dumps(rates),
    }
    return render(request, "portal/playground.html", context)


def key(request: PortalRequest) -> HttpResponse:
    """A fresh key for the page, as JSON: it is kept in the page's memory alone."""
    project = Project.objects.of(request.tenant).filter(slug=sent(request, "project")).first()
    if project is None:
        return JsonResponse({"error": "Choose a project."}, status=400)
    form = Form(request.POST)
    with refusals_to(form):
        _, text = playground_key(project, request.user)
    if form.errors:
        return JsonResponse({"error": form.non_field_errors()[0]}, status=409)
    return JsonResponse({"key": text, "seconds": LIFE.total_seconds()})


def _rates(price: Price) -> list[float]:
    """For a figure that grows while one looks; the record has the exact one."""
    return [float(price.input), float(price.cached_input), float(price.output)]
