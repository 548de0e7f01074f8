from django.apps import AppConfig
from django.contrib.admin import apps as admin


class HeadraceConfig(AppConfig):
    default = True
    name = "headrace"
    verbose_name = "Platform"


class OperatorAdminConfig(admin.AdminConfig):
    default = False
    default_site = "headrace.operator_site.OperatorSite"
