"""What a page says when it cannot be shown. None of them tells whether what was asked for exists,
but a `Refused` of what the visitor may see."""

import sys
from smtplib import SMTPException
from typing import Any

import redis
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from kombu.exceptions import OperationalError as BrokerError

from headrace.portal.denials import Refused


def bad(request: HttpRequest, exception: Any = None) -> HttpResponse:
    return render(request, "errors/400.html", status=400)


def forbidden(request: HttpRequest, exception: Any = None) -> HttpResponse:
    refused = exception if isinstance(exception, Refused) else None
    return render(request, "errors/403.html", {"refused": refused}, status=403)


def forged(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form without its token: another site's, or one of a page that is older than the session."""
    return render(request, "errors/stale.html", status=403)


def too_many(request: HttpRequest) -> HttpResponse:
    """allauth's limits of signing in, of letters and the like."""
    return render(request, "errors/429.html", status=429)


def missing(request: HttpRequest, exception: Any = None) -> HttpResponse:
    return render(request, "errors/404.html", status=404)


def broken(request: HttpRequest) -> HttpResponse:
    """What is away is said to be; anything else is a fault of ours. Asks no store anything."""
    error = sys.exc_info()[1]
    is_redis = isinstance(error, redis.RedisError | BrokerError)
    if not is_redis and not isinstance(error, OperationalError | SMTPException | ConnectionError | TimeoutError):
        return render(None, "errors/500.html", status=500)
    context = {"is_database": isinstance(error, OperationalError), "is_redis": is_redis}
    response = render(None, "errors/away.html", context, status=503)
    response["Retry-After"] = "5"
    return response
