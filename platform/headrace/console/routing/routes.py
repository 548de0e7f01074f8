"""The operators' pages on models and their routes."""

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.admin import TabularInline
from unfold.decorators import display
from unfold.widgets import UnfoldAdminTextInputWidget

from headrace.console.cells import number
from headrace.console.routing.route_state import TITLES, route_state
from headrace.console.saving import Asked, AskingAdmin, State, differences
from routing.conditions import BadConditions, read
from routing.models import TIMEOUT_FIELDS, CacheScope, Model, Route, Target

LAST = 2**31 - 1  # the column's largest: a new target sorts after those that have a place


@admin.register(Model)
class ModelPage(AskingAdmin):
    list_display = ("name", "state", "window", "default_output", "leads_to")
    list_filter = ("enabled",)
    search_fields = ("name",)
    readonly_fields = ("created_at", "leads_to")
    fields = (("name", "enabled"), ("context_window", "default_max_tokens"), "leads_to", "created_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Model]:
        rows: QuerySet[Model] = super().get_queryset(request).prefetch_related("route__targets")
        return rows

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        return (*self.readonly_fields, "name") if obj else self.readonly_fields

    def save_model(self, request: HttpRequest, obj: Model, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        Route.objects.get_or_create(model=obj)  # a model has a route from its first day, if an empty one

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False  # records and prices name it for ever; it is switched off instead

    def state_of(self, row: Model) -> State:
        return {
            "State": self.state(row),
            "Context window": f"{row.context_window:,} tokens",
            "Default output": f"{row.default_max_tokens:,} tokens",
        }

    def asks(self, row: Model, before: State | None) -> Asked:
        """A new one has no target yet: nothing acts on traffic."""
        return Asked(
            title=f"Change {row}?",
            effects=[f"It holds within a second, for every tenant that may call {row}. Running requests finish."]
            + ["While it is off, all other requests for it are refused."] * (not row.enabled),
            changes=differences(before, self.state_of(row)) if before else (),
            button="Change the model",
        )

    @display(description="State", ordering="enabled", label={"on": "success", "off": "danger"})
    def state(self, model: Model) -> str:
        return "on" if model.enabled else "off"

    @display(description="Context window", ordering="context_window")
    def window(self, model: Model) -> SafeString:
        return number(model.context_window, "tokens")

    @display(description="Default output", ordering="default_max_tokens")
    def default_output(self, model: Model) -> SafeString:
        return number(model.default_max_tokens, "tokens")

    @display(description="Route")
    def leads_to(self, model: Model) -> SafeString:
        if not hasattr(model, "route"):
            return format_html("{}", "made when the model is saved")
        targets = [target.slug for target in model.route.targets.all()] or ["no target yet"]
        shown = format_html_join(", ", "{}", ([name] for name in targets))
        link = reverse("admin:routing_route_change", args=[model.pk])
        return format_html('<a class="hr-link" href="{}">{}</a>', link, shown)


class TargetForm(forms.ModelForm):  # type: ignore[type-arg]
    wants = forms.CharField(
        label="Only requests with",
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="Any of min_prompt_tokens=8000 max_prompt_tokens= min_output_tokens= max_output_tokens="
        " modalities=text,image tools=yes tenants=acme projects=acme/web keys= tiers=gold; all must hold.",
    )

    class Meta:
        model = Target
        fields = ("position", "pool", "provider", "upstream_model", "context_window", "weight", "canary", "shadow")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["wants"].initial = str(self.instance.wants) if self.instance.conditions else ""
        self.fields["position"].required = False  # the page fills it only once a row is dragged

    def clean_wants(self) -> str:
        line: str = self.cleaned_data["wants"]
        try:
            self.instance.conditions = read(line).as_dict()
        except BadConditions as error:
            raise ValidationError(str(error)) from error
        return line

    def clean_position(self) -> int:
        position: int | None = self.cleaned_data["position"]
        return LAST if position is None else position

    def _get_validation_exclusions(self) -> set[str]:
        # Positions are numbered anew when all targets are saved: two that change places do not clash.
        exclusions: set[str] = super()._get_validation_exclusions()  # type: ignore[misc]
        return exclusions | {"position"}


class TargetInline(TabularInline):
    model = Target
    form = TargetForm
    extra = 0
    ordering = ("position",)
    ordering_field = "position"
    hide_ordering_field = True
    fields = ("pool", "provider", "upstream_model", "context_window", "wants", "weight", "canary", "shadow", "position")
    autocomplete_fields = ("pool", "provider")

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if db_field.is_relation and field is not None:  # no room for buttons beside each choice
            for button in ("add", "change", "delete", "view"):
                setattr(field.widget, f"can_{button}_related", False)
        return field


@admin.register(Route)
class RoutePage(AskingAdmin):
    inlines = (TargetInline,)
    ordering = ("model",)
    list_display = ("model", "targets_in_order", "policy", "scope", "unknown_fields", "first_byte", "total")
    list_filter = ("policy", "cache_scope", "unknown_fields")
    search_fields = ("model__name", "targets__pool__name", "targets__provider__name")
    readonly_fields = ("model",)
    fieldsets = (
        (None, {"fields": ["model", "policy", ("cache_scope", "unknown_fields"), "ignore_eos"]}),
        ("Timeouts, in seconds", {"fields": [TIMEOUT_FIELDS[:2], TIMEOUT_FIELDS[2:]]}),
        ("While all replicas are busy", {"fields": [("queue_timeout", "queue_length")]}),
        ("What counts as good, in seconds", {"fields": [("ttft_target", "tpot_target")]}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Route]:
        rows: QuerySet[Route] = super().get_queryset(request).prefetch_related("targets")
        return rows

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name in TITLES:
            kwargs["label"] = TITLES[db_field.name]
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False  # it comes with its model

    def has_delete_permission(self, request: HttpRequest, obj: Route | None = None) -> bool:
        return False  # and goes with it

    def state_of(self, row: Route) -> State:
        return route_state(row)

    def asks(self, row: Route, before: State | None) -> Asked:
        has_targets = Target.objects.filter(route=row).exists()
        return Asked(
            title=f"Change where requests for {row} go?",
            effects=[
                f"New requests for {row}, of every tenant that may call it, are sent by this within a second."
                if has_targets
                else f"It leaves no target: every new request for {row} is refused within a second.",
                "Those that run finish where they are.",
            ],
            changes=differences(before or {}, self.state_of(row)),
            button="Change the route",
        )

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        for position, target in enumerate(Target.objects.filter(route=form.instance).order_by("position", "pk")):
            if target.position != position:
                target.position = position
                target.save(update_fields=["position"])

    @display(description="Targets, in order")
    def targets_in_order(self, route: Route) -> str:
        return ", ".join(target.slug for target in route.targets.all()) or "none"

    @display(description="Prefix cache", ordering="cache_scope", label={"per tenant": "success", "shared": "warning"})
    def scope(self, route: Route) -> str:
        return "shared" if route.cache_scope == CacheScope.SHARED else "per tenant"

    @display(description="First byte within", ordering="first_byte_timeout")
    def first_byte(self, route: Route) -> SafeString:
        return number(route.first_byte_timeout, "s")

    @display(description="Whole within", ordering="total_timeout")
    def total(self, route: Route) -> SafeString:
        return number(route.total_timeout, "s")
