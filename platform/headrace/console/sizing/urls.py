from django.contrib import admin
from django.urls import path

from headrace.console.sizing import views

app_name = "sizing"
urlpatterns = [
    path("", admin.site.admin_view(views.page), name="page"),
    path("answer", admin.site.admin_view(views.answer), name="answer"),
    path("levers", admin.site.admin_view(views.levers), name="levers"),
]
