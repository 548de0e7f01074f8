"""Webhooks: where alerts are posted to, what became of each, and a test."""

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render

from billing.budgets.webhooks import add_webhook, change_webhook, remove_webhook, send_test
from billing.models import Delivery, Notice, WebhookEndpoint
from headrace.form_errors import refusals_to
from headrace.portal.forms.webhooks import WebhookForm
from headrace.portal.request import PortalRequest

PAGE = 50
CHECK = """\
import hashlib, hmac, time

def is_ours(secret: str, header: str, body: bytes) -> bool:
    at, _, signed = header.removeprefix("t=").partition(",v1=")
    wanted = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return abs(time.time() - int(at)) < 300 and hmac.compare_digest(wanted, signed)
"""  # what people may copy; a test runs it


def listing(request: PortalRequest) -> HttpResponse:
    endpoints = WebhookEndpoint.objects.filter(tenant=request.tenant).order_by("id")
    log = _log(request)
    return render(request, "portal/budget_webhooks.html", {"endpoints": list(endpoints), **log})


def create(request: PortalRequest) -> HttpResponse:
    """The secret is in the answer to the form and nowhere else: it is stored sealed, to sign with."""
    form = WebhookForm(request.tenant, request.POST or None)
    if request.method == "POST" and form.is_valid():
        with refusals_to(form):
            added = add_webhook(tenant=request.tenant.pk, url=form.cleaned_data["url"])
        if not form.errors:
            context = {"endpoint": added.webhook, "secret": added.secret, "check": CHECK}
            return render(request, "portal/budget_webhook_made.html", context)
    return render(request, "portal/budget_webhook_new.html", {"form": form})


def test(request: PortalRequest, webhook: int) -> HttpResponse:
    if send_test(webhook=_endpoint(request, webhook)):
        messages.success(request, "A test is on its way: what became of it is below within seconds.")
    else:
        messages.info(request, "A test is on its way already.")
    return redirect("portal:budgets-webhooks", request.tenant.slug)


def switch(request: PortalRequest, webhook: int) -> HttpResponse:
    endpoint = _endpoint(request, webhook)
    change_webhook(webhook=endpoint, enabled=request.POST.get("enabled") == "1")
    messages.success(request, f"{endpoint.url} is {'told again' if endpoint.enabled else 'told of nothing for now'}.")
    return redirect("portal:budgets-webhooks", request.tenant.slug)


def remove(request: PortalRequest, webhook: int) -> HttpResponse:
    endpoint = _endpoint(request, webhook)
    remove_webhook(webhook=endpoint)
    messages.success(request, f"{endpoint.url} is removed, and what was sent there with it.")
    return redirect("portal:budgets-webhooks", request.tenant.slug)


def _log(request: PortalRequest) -> dict[str, object]:
    """The newest deliveries to endpoints."""
    rows = Notice.objects.filter(tenant=request.tenant, endpoint__isnull=False)
    rows = rows.select_related("endpoint", "alert", "alert__budget").order_by("-id")
    found = list(rows[:PAGE])
    return {"log": found, "is_waiting": any(_is_on_its_way(notice) for notice in found)}


def _is_on_its_way(notice: Notice) -> bool:
    """What waits for a paused endpoint does so until somebody has it told again."""
    is_told = notice.alert is None or (notice.endpoint is not None and notice.endpoint.enabled)
    return notice.state == Delivery.WAITING and is_told


def _endpoint(request: PortalRequest, pk: int) -> WebhookEndpoint:
    found = WebhookEndpoint.objects.filter(tenant=request.tenant, pk=pk).first()
    if found is None:
        raise Http404
    return found
