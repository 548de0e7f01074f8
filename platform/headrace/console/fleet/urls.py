from django.contrib import admin
from django.urls import path

from headrace.console.fleet import views

app_name = "fleet"
urlpatterns = [
    path("", admin.site.admin_view(views.page), name="page"),
    path("state", admin.site.admin_view(views.state), name="state"),
    path("replicas/<int:replica>/drain", admin.site.admin_view(views.drain), name="drain"),
]
