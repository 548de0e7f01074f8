from django.apps import AppConfig
from django.contrib.admin import apps as admin


class ConsoleConfig(AppConfig):
    default = True
    name = "headrace.console"
    label = "console"


class SiteConfig(admin.AdminConfig):
    default = False
    default_site = "headrace.console.site.OperatorSite"
