from django.contrib import admin
from django.urls import path

from headrace.console.explain import views

app_name = "routes"
urlpatterns = [path("", admin.site.admin_view(views.page), name="explain")]
