"""The screens. The data plane's paths (`/v1`, health, metrics) never reach Django: asgi.py keeps them."""

from django.contrib import admin
from django.urls import path
from django.views.generic import RedirectView

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", admin.site.urls),
]
