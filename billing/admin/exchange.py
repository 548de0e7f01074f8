"""The operators' page on exchange rates."""

from django.contrib import admin
from unfold.admin import ModelAdmin

from billing.models import ExchangeRate


@admin.register(ExchangeRate)
class ExchangeRateAdmin(ModelAdmin):
    list_display = ("base", "quote", "rate", "day")
    list_filter = ("base", "quote")
    fieldsets = ((None, {"fields": [("base", "quote"), ("rate", "day")]}),)
