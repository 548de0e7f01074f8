"""The operators' page on prices: what holds, what held, and what changes from when."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.decorators import display

from billing.models import Price
from billing.price_start import TooEarly, start_of, told_start
from headrace.console.billing.price_changes import changes_of, effects_of, price_state, replaced_by
from headrace.console.saving import Asked, AskingAdmin, State
from tenants.models import Tenant

FIELDS = (
    ("model", "currency"),
    ("target", "tenant"),
    ("input", "cached_input", "output"),
    ("cache_hit",),
    ("effective_from",),
)
SCOPE = ("model", "target", "tenant", "currency")
COLOURS = {"in force": "success", "superseded": "info", "to come": "warning"}


class PriceForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Price
        fields = tuple(name for row in FIELDS for name in row)
        help_texts = {
            "effective_from": "In UTC; empty: at once, or two seconds later where it takes another's place. Requests "
            "admitted from then on are charged by it. One in force can no longer be changed or removed: a newer one "
            "takes its place."
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "effective_from" in self.fields:
            self.fields["effective_from"].required = False
        if self.instance._state.adding:
            self.initial["effective_from"] = None

    def clean_tenant(self) -> str:
        slug: str = self.cleaned_data["tenant"]
        if slug and not Tenant.objects.filter(pk=slug).exists():
            raise forms.ValidationError("There is no such tenant.")
        return slug

    def clean(self) -> dict[str, Any]:
        """At once is when it is saved, however long somebody thought over the question before that."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if "effective_from" in self.fields and "effective_from" not in self.errors:
            names = ("model", "target", "tenant", "currency")
            scope = {name: cleaned.get(name, getattr(self.instance, name)) for name in names}
            try:
                cleaned["effective_from"] = start_of(Price(pk=self.instance.pk, **scope), cleaned["effective_from"])
            except TooEarly:
                self.add_error("effective_from", "The past stays as it was charged: it must not lie before now.")
        return cleaned


@admin.register(Price)
class PriceAdmin(AskingAdmin):
    list_display = ("version", "for_whom", "state", "began", "per_input", "per_cached", "per_output")
    list_filter = ("currency", "model")
    search_fields = ("version", "tenant", "target")
    form = PriceForm
    list_fullwidth = True
    list_per_page = 25

    def get_fields(self, request: HttpRequest, obj: Price | None = None) -> Any:
        return (("version", "state"), *FIELDS) if obj else FIELDS

    def get_readonly_fields(self, request: HttpRequest, obj: Price | None = None) -> tuple[str, ...]:
        return ("version", "state", "model", "currency", "target", "tenant") if obj else ()

    def has_change_permission(self, request: HttpRequest, obj: Price | None = None) -> bool:
        allowed: bool = super().has_change_permission(request, obj)
        return allowed and (obj is None or not obj.is_fixed)

    def has_delete_permission(self, request: HttpRequest, obj: Price | None = None) -> bool:
        allowed: bool = super().has_delete_permission(request, obj)
        return allowed and obj is not None and not obj.is_fixed

    def save_model(self, request: HttpRequest, obj: Price, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        transaction.on_commit(lambda: self._tell_start(request, obj))

    def _tell_start(self, request: HttpRequest, price: Price) -> None:
        """After the commit, which may have moved it on."""
        price.refresh_from_db(fields=["effective_from"])
        messages.success(request, f"{price} holds from {told_start(price)}.")

    def state_of(self, row: Price) -> State:
        return price_state(row)

    def asks(self, row: Price, before: State | None) -> Asked:
        changes = changes_of(row, price_state(replaced_by(row)) if before is None else before)
        return Asked(
            title=f"Charge for {row.model} by {'a new' if before is None else 'this changed'} price?",
            effects=effects_of(row),
            changes=changes if before is None or any(each.before != each.after for each in changes) else (),
            button="Set the price",
        )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Price]:
        newer = Price.objects.in_force().filter(
            effective_from__gt=OuterRef("effective_from"), **{name: OuterRef(name) for name in SCOPE}
        )
        rows: QuerySet[Price] = super().get_queryset(request)
        return rows.annotate(is_superseded=Exists(newer))

    @display(description="For", ordering="tenant")
    def for_whom(self, price: Price) -> str:
        return " at ".join(filter(None, [price.tenant or "all tenants", price.target]))

    @display(description="State", label=COLOURS)
    def state(self, price: Price) -> str:
        if price.effective_from > timezone.now():
            return "to come"
        return "superseded" if price.is_superseded else "in force"  # type: ignore[attr-defined]

    @display(description="From (UTC)", ordering="effective_from")
    def began(self, price: Price) -> str:
        return _minute(price.effective_from)

    @display(description="Input, per million")
    def per_input(self, price: Price) -> SafeString:
        return _rate(price.input, price.currency)

    @display(description="Cached input")
    def per_cached(self, price: Price) -> SafeString:
        return _rate(price.cached_input, price.currency)

    @display(description="Output")
    def per_output(self, price: Price) -> SafeString:
        return _rate(price.output, price.currency)


def _minute(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"


def _rate(rate: Decimal, currency: str) -> SafeString:
    """At least two decimals, and as many as the price has."""
    digits = max(2, -int(rate.normalize().as_tuple().exponent))
    return format_html('<span class="hr-number">{}\u00a0{}</span>', f"{rate:,.{digits}f}", currency)
