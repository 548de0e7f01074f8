"""What a page says when it cannot be shown. None of them tells whether what was asked for exists,
but a `Refused` of what the visitor may see."""

import sys
from typing import Any

from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from headrace.portal.refusing import Refused


def bad(request: HttpRequest, exception: Any = None) -> HttpResponse:
    return render(request, "errors/400.html", status=400)


def forbidden(request: HttpRequest, exception: Any = None) -> HttpResponse:
    refused = exception if isinstance(exception, Refused) else None
    return render(request, "errors/403.html", {"refused": refused}, status=403)


def missing(request: HttpRequest, exception: Any = None) -> HttpResponse:
    return render(request, "errors/404.html", status=404)


def broken(request: HttpRequest) -> HttpResponse:
    """A database that is away is said to be; anything else is a fault of ours. Asks the database nothing."""
    away = isinstance(sys.exc_info()[1], OperationalError)
    name, status = ("away", 503) if away else ("500", 500)
    response = render(None, f"errors/{name}.html", status=status)
    if away:
        response["Retry-After"] = "5"
    return response
