"""The operators' pages on who invoices, how each tenant is invoiced, and credits."""

from decimal import Decimal
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.decorators import display

from billing import amounts
from billing.models import BillingAccount, Credit, LegalEntity
from headrace.console.money_cells import total


@admin.register(LegalEntity)
class LegalEntityAdmin(ModelAdmin):
    list_display = ("slug", "name", "invoice_prefix", "next_number")
    search_fields = ("slug", "name")
    fields = (("slug", "name"), ("tax_id", "email"), ("invoice_prefix", "next_number"), "address", "company_data")
    list_fullwidth = True

    def get_readonly_fields(self, request: HttpRequest, obj: LegalEntity | None = None) -> tuple[str, ...]:
        """A series begins where an operator says, and goes on by itself."""
        return ("slug", "next_number") if obj else ()

    def has_delete_permission(self, request: HttpRequest, obj: LegalEntity | None = None) -> bool:
        return False


@admin.register(BillingAccount)
class BillingAccountAdmin(ModelAdmin):
    list_display = ("tenant", "legal_entity", "name", "tax", "discount", "least", "reference")
    list_filter = (("legal_entity", admin.RelatedOnlyFieldListFilter),)
    search_fields = ("tenant__slug", "name")
    autocomplete_fields = ("tenant", "legal_entity")
    fieldsets = (
        (None, {"fields": [("tenant", "legal_entity")]}),
        ("Invoiced to", {"fields": [("name", "tax_id"), ("email", "reference"), "address"]}),
        ("Terms", {"fields": [("tax_rate", "discount_percent"), ("minimum_fee", "payment_days")]}),
    )
    list_select_related = ("tenant", "legal_entity")
    list_fullwidth = True

    def get_readonly_fields(self, request: HttpRequest, obj: BillingAccount | None = None) -> tuple[str, ...]:
        return ("tenant",) if obj else ()

    @display(description="Tax", ordering="tax_rate")
    def tax(self, account: BillingAccount) -> SafeString:
        return _percent(account.tax_rate)

    @display(description="Discount", ordering="discount_percent")
    def discount(self, account: BillingAccount) -> SafeString:
        return _percent(account.discount_percent)

    @display(description="Minimum fee", ordering="minimum_fee")
    def least(self, account: BillingAccount) -> SafeString:
        return total(account.minimum_fee, account.tenant.currency)

    def has_delete_permission(self, request: HttpRequest, obj: BillingAccount | None = None) -> bool:
        return False  # what was agreed is changed, and the audit trail has how


@admin.register(Credit)
class CreditAdmin(ModelAdmin):
    list_display = ("tenant", "given", "left", "reason", "created_at")
    search_fields = ("tenant__slug", "reason")
    autocomplete_fields = ("tenant",)
    fields = (("tenant", "currency"), ("amount", "reason"))
    list_fullwidth = True

    def has_change_permission(self, request: HttpRequest, obj: Credit | None = None) -> bool:
        allowed: bool = super().has_change_permission(request, obj)
        return allowed and (obj is None or not _is_used(obj))

    def has_delete_permission(self, request: HttpRequest, obj: Credit | None = None) -> bool:
        allowed: bool = super().has_delete_permission(request, obj)
        return allowed and obj is not None and not obj.lines.exists()

    @display(description="Amount", ordering="amount")
    def given(self, credit: Credit) -> SafeString:
        return total(credit.amount, credit.currency)

    @display(description="Left")
    def left(self, credit: Any) -> SafeString:
        return total(credit.remaining, credit.currency)


def _percent(rate: Decimal) -> SafeString:
    return format_html('<span class="hr-number">{}\u00a0%</span>', amounts.plain(rate))


def _is_used(credit: Credit) -> bool:
    return bool(credit.lines.exclude(invoice__status="draft").exists())
