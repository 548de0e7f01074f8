"""Where a visitor comes from, as audit trail, sessions and log-in limits tell it."""

from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_address

from django.conf import settings
from django.http import HttpRequest, HttpResponse


def visitor_s_address(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware. Behind a proxy (HEADRACE_BEHIND_PROXY) REMOTE_ADDR is whom it speaks for, as it was the last to say
    in x-forwarded-for: what stands before that may be the visitor's own invention."""

    def middleware(request: HttpRequest) -> HttpResponse:
        if settings.BEHIND_PROXY:
            said = request.META.get("HTTP_X_FORWARDED_FOR", "").rpartition(",")[2].strip()
            with suppress(ValueError):  # the proxy's own address is better than none
                request.META["REMOTE_ADDR"] = str(ip_address(said))
        return get_response(request)

    return middleware
