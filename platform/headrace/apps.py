from django.apps import AppConfig


class HeadraceConfig(AppConfig):
    name = "headrace"
    verbose_name = "Platform"
