from django.contrib import admin
from django.urls import path

from headrace.console.settlement import views

app_name = "settlement"
urlpatterns = [path("", admin.site.admin_view(views.page), name="page")]
