"""The page for a quota that was reached after a form had been checked: by another request at the same moment."""

from collections.abc import Callable

from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render

from headrace.portal.denials import Refused
from tenants import quotas


class QuotaReached:
    """Answers for the portal and the admin alike; any other error is passed on."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        said = quotas.refusal(exception) if isinstance(exception, IntegrityError) else None
        if said is None:
            return None
        return render(request, "errors/403.html", {"refused": Refused("Quota reached", said)}, status=403)
