from django.contrib import admin
from django.urls import path

from headrace.console.costs import views

app_name = "costs"
urlpatterns = [path("", admin.site.admin_view(views.page), name="page")]
