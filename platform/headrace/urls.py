"""The screens. The data plane's paths (`/v1`, health, metrics) never reach Django: asgi.py keeps them."""

from django.contrib import admin
from django.templatetags.static import static
from django.urls import include, path
from django.views.generic import RedirectView

from headrace.portal.lost_secrets import GenerateCodes
from headrace.portal.views import failing

urlpatterns = [
    path("admin/fleet/", include("headrace.console.fleet.urls")),
    path("admin/cost/", include("headrace.console.costs.urls")),
    path("admin/routes/explain/", include("headrace.console.explain.urls")),
    path("admin/settlement/", include("headrace.console.settlement.urls")),
    path("admin/sizing/", include("headrace.console.sizing.urls")),
    path("admin/", admin.site.urls),
    path("favicon.ico", RedirectView.as_view(url=static("headrace/portal/mark.svg"))),
    path("account/2fa/recovery-codes/generate/", GenerateCodes.as_view(), name="mfa_generate_recovery_codes"),
    path("account/", include("allauth.urls")),
    path("", include("headrace.portal.urls")),
]
handler400, handler403, handler404, handler500 = failing.bad, failing.forbidden, failing.missing, failing.broken
handler429 = failing.too_many  # allauth's
