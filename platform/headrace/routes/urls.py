from django.contrib import admin
from django.urls import path

from headrace.routes import views

app_name = "routes"
urlpatterns = [path("", admin.site.admin_view(views.page), name="explain")]
