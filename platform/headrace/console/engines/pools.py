"""The operators' pages on pools, their replicas, and providers. Secrets are written here and never shown again."""

from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin, TabularInline
from unfold.decorators import display
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldBooleanSwitchWidget

from engines.models import Pool, Provider, Replica
from headrace_core import sealing


class SecretForm(forms.ModelForm):  # type: ignore[type-arg]
    """For each sealed column `x`: a field `new_x` that replaces it when filled in, and `clear_x` that removes it."""

    sealed: tuple[str, ...] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in self.sealed:
            stored = bool(getattr(self.instance, name))
            self.fields[f"new_{name}"].help_text = "One is stored. Empty: keep it." if stored else "None is stored."
            self.fields[f"clear_{name}"].disabled = not stored

    def save(self, commit: bool = True) -> Any:
        for name in self.sealed:
            if self.cleaned_data.get(f"clear_{name}"):
                setattr(self.instance, name, None)
            if text := self.cleaned_data.get(f"new_{name}"):
                setattr(self.instance, name, sealing.seal(text))
        return super().save(commit)


def _new(label: str) -> forms.CharField:
    attributes = {"autocomplete": "new-password"}
    return forms.CharField(label=label, required=False, max_length=2000, widget=UnfoldAdminPasswordWidget(attributes))


def _clear() -> forms.BooleanField:
    return forms.BooleanField(label="Remove it", required=False, widget=UnfoldBooleanSwitchWidget)


def _short(value: Decimal) -> str:
    """Without the zeros that only fill the column's scale."""
    text = f"{value:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


class PoolForm(SecretForm):
    sealed = ("api_key", "admin_key")
    new_api_key, clear_api_key = _new("API key of the engines"), _clear()
    new_admin_key, clear_admin_key = _new("Admin key of the engines"), _clear()

    class Meta:
        model = Pool
        fields = (
            "name", "engine", "model", "modalities", "gpu_hour_cost", "cost_currency", "gpus_per_replica",
            "orders_by_priority",
        )  # fmt: skip


class ProviderForm(SecretForm):
    sealed = ("api_key",)
    new_api_key, clear_api_key = _new("API key"), _clear()

    class Meta:
        model = Provider
        fields = ("name", "protocol", "base_url")


class ReplicaForm(forms.ModelForm):  # type: ignore[type-arg]
    def clean_name(self) -> str:
        """Django does not look among the rows that there are for names that are one's own in a pool alone."""
        name: str = self.cleaned_data["name"]
        others = Replica.objects.filter(pool=self.instance.pool_id, name=name).exclude(pk=self.instance.pk)
        if others.exists():
            raise forms.ValidationError("Another replica of this pool still has this name: rename that one first.")
        return name


class ReplicaInline(TabularInline):
    model = Replica
    form = ReplicaForm
    extra = 0
    fields = ("name", "url", "enabled")


@admin.register(Pool)
class PoolAdmin(ModelAdmin):
    form = PoolForm
    inlines = (ReplicaInline,)
    list_display = ("name", "engine_label", "model", "replicas_enabled", "hour_cost", "gpus", "created_at")
    list_filter = ("engine",)
    search_fields = ("name", "model", "replicas__url")
    fieldsets = (
        (
            None,
            {
                "fields": [
                    ("name", "engine"),
                    ("model", "modalities"),
                    ("gpu_hour_cost", "cost_currency"),
                    ("gpus_per_replica", "orders_by_priority"),
                ]
            },
        ),
        ("Secrets", {"fields": [("new_api_key", "clear_api_key"), ("new_admin_key", "clear_admin_key")]}),
    )
    list_fullwidth = True

    def get_queryset(self, request: HttpRequest) -> QuerySet[Pool]:
        counts = {"n_all": Count("replicas"), "n_on": Count("replicas", Q(replicas__enabled=True))}
        rows: QuerySet[Pool] = super().get_queryset(request).annotate(**counts)
        return rows

    def get_readonly_fields(self, request: HttpRequest, obj: Pool | None = None) -> tuple[str, ...]:
        return ("name",) if obj else ()

    @display(description="Engine", ordering="engine", label=True)
    def engine_label(self, pool: Pool) -> str:
        return pool.get_engine_display()

    @display(description="Replicas enabled", ordering="n_on")
    def replicas_enabled(self, pool: Any) -> str:
        return f"{pool.n_on} of {pool.n_all}"  # without a colour: enabled says nothing of health

    @display(description="Cost of a GPU hour", ordering="gpu_hour_cost")
    def hour_cost(self, pool: Pool) -> str:
        cost = pool.gpu_hour_cost
        shown = f"{cost:,.2f}" if cost == round(cost, 2) else _short(cost)
        return f"{shown} {pool.cost_currency}"

    @display(description="GPUs per replica", ordering="gpus_per_replica")
    def gpus(self, pool: Pool) -> str:
        return _short(pool.gpus_per_replica)


@admin.register(Provider)
class ProviderAdmin(ModelAdmin):
    form = ProviderForm
    list_display = ("name", "protocol", "base_url", "has_key", "created_at")
    search_fields = ("name", "base_url")
    fieldsets = (
        (None, {"fields": [("name", "protocol"), "base_url"]}),
        ("Secret", {"fields": [("new_api_key", "clear_api_key")]}),
    )

    def get_readonly_fields(self, request: HttpRequest, obj: Provider | None = None) -> tuple[str, ...]:
        return ("name",) if obj else ()

    @display(description="API key stored", boolean=True)
    def has_key(self, provider: Provider) -> bool:
        return bool(provider.api_key)
