from django.apps import AppConfig


class PortalConfig(AppConfig):
    name = "headrace.portal"
    label = "portal"
