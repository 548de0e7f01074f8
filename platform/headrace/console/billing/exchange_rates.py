"""The operators' page on exchange rates."""

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.decorators import display

from billing import amounts
from billing.models import ExchangeRate


@admin.register(ExchangeRate)
class ExchangeRateAdmin(ModelAdmin):
    list_display = ("base", "quote", "worth", "day")
    list_filter = ("base", "quote")
    fieldsets = (
        (
            None,
            {
                "fields": [("base", "quote"), ("rate", "day")],
                "description": "What one unit of the base is worth in the quote, from that day on until a later rate.",
            },
        ),
    )

    @display(description="Rate", ordering="rate")
    def worth(self, rate: ExchangeRate) -> SafeString:
        return format_html('<span class="hr-number">{}</span>', amounts.plain(rate.rate))
