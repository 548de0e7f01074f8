"""The screens. The data plane's paths (`/v1`, health, metrics) never reach Django: asgi.py keeps them."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/sizing/", include("headrace.sizing.urls")),
    path("admin/", admin.site.urls),
]
