"""Where the API is, as people copy it."""

from django.conf import settings
from django.http import HttpRequest


def api_base(request: HttpRequest) -> str:
    """HEADRACE_API_URL, else `/v1` of the host that the portal was reached at."""
    return settings.API_URL.rstrip("/") or request.build_absolute_uri("/v1")
