"""What every screen says of itself to the browser: where scripts may come from, and that nobody keeps a copy."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

PORTAL_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self';"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# Unfold's pages carry inline scripts and styles, and Alpine, which evaluates expressions. Nothing comes from elsewhere.
ADMIN_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline';"
    " img-src 'self' data:; object-src 'none'; form-action 'self'; base-uri 'self'; frame-ancestors 'none'"
)
_PERMISSIONS = "camera=(), geolocation=(), microphone=(), payment=(), usb=()"


def security_headers(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware. The strict policy is the rule, the admin's the one exception."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        is_admin = request.path.startswith("/admin/")
        response.headers.setdefault("Content-Security-Policy", ADMIN_POLICY if is_admin else PORTAL_POLICY)
        response.headers.setdefault("Permissions-Policy", _PERMISSIONS)
        if not request.path.startswith("/static/"):
            response.headers.setdefault("Cache-Control", "no-store")
        return response

    return middleware
