"""The operators' pages on budgets: how each stands, who was told of what, and where alerts are posted to."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import redis
from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import action, display
from unfold.views import ChangeList

from billing.budgets.balances import Standing, standings
from billing.budgets.changing import reset_budget
from billing.budgets.terms import add_budget, change_budget, check_scope, remove_budget
from billing.budgets.webhooks import add_webhook, change_webhook, check_address, remove_webhook
from billing.models import Budget, BudgetAdjustment, BudgetAlert, Notice, WebhookEndpoint
from headrace.console.billing.budget_changes import asked_of, budget_state, scope_of
from headrace.console.cells import number
from headrace.console.confirmation import question, reason_of
from headrace.console.growing_lists import GrowingList
from headrace.console.money_cells import cost, total
from headrace.console.saving import Asked, AskingAdmin, State
from headrace.form_errors import invalid_to
from headrace_core import audit
from headrace_core.writes import InvalidWrite

SCOPE = ("tenant", "name", "project", "key", "model", "period")
STATES = {"fine": "success", "warned": "warning", "used up": "danger", "rebuilding": "info", "off": "info"}


class BudgetForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Budget
        fields = (*SCOPE, "amount", "hard", "enabled", "set_by", "thresholds", "extra", "extra_until")

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if tenant := cleaned.get("tenant"):
            with invalid_to(self):
                check_scope(tenant=tenant.pk, project=cleaned.get("project", ""), key=cleaned.get("key", ""))
        return cleaned


class BudgetList(ChangeList):
    result_list: Any

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        _note_standings(self.result_list)


@admin.register(Budget)
class BudgetAdmin(AskingAdmin):
    form = BudgetForm
    list_display = ("budget", "counts", "period_label", "state", "limit", "spent", "held", "left", "used")
    list_filter = (("tenant", AutocompleteSelectFilter), "period", "hard", "enabled", "set_by")
    list_filter_submit = True
    search_fields = ("name", "tenant__slug", "project", "key", "model")
    autocomplete_fields = ("tenant",)
    list_select_related = ("tenant",)
    list_fullwidth = True
    list_per_page = 25
    actions = ("reset",)
    readonly_fields = ("stands",)
    fieldsets = (
        (
            None,
            {
                "fields": [
                    ("tenant", "name"),
                    ("project", "key", "model"),
                    ("amount", "period"),
                    ("hard", "enabled"),
                    "set_by",
                ]
            },
        ),
        ("Telling", {"fields": ["thresholds"]}),
        ("Temporary increase", {"fields": [("extra", "extra_until")]}),
        ("Now", {"fields": ["stands"]}),
    )

    def get_readonly_fields(self, request: HttpRequest, obj: Budget | None = None) -> tuple[str, ...]:
        return (*self.readonly_fields, *SCOPE) if obj else self.readonly_fields

    def state_of(self, row: Budget) -> State:
        return budget_state(row)

    def asks(self, row: Budget, before: State | None) -> Asked:
        return asked_of(row, before)

    def write(self, request: HttpRequest, obj: Budget, form: Any, change: bool) -> None:
        if change:
            change_budget(budget=obj, **{name: form.cleaned_data[name] for name in form.changed_data})
            return
        added = add_budget(**form.cleaned_data | {"tenant": obj.tenant_id})
        obj.pk, obj.thresholds = added.pk, added.thresholds

    def delete_model(self, request: HttpRequest, obj: Budget) -> None:
        remove_budget(budget=obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Budget]) -> None:
        for budget in queryset:
            remove_budget(budget=budget)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[BudgetList]:
        return BudgetList

    def _of(self, budget: Budget) -> Standing | None:
        """How it stands, asked once a page; None while Redis is away."""
        if not hasattr(budget, "standing"):
            _note_standings([budget])
        found: Standing | None = budget.standing  # type: ignore[attr-defined]
        return found

    @display(description="Budget", ordering="tenant")
    def budget(self, budget: Budget) -> str:
        return str(budget)

    @display(description="Counts")
    def counts(self, budget: Budget) -> str:
        return scope_of(budget) or "all"

    @display(description="Period", ordering="period")
    def period_label(self, budget: Budget) -> str:
        return f"{budget.period}, {'hard' if budget.hard else 'soft'}"

    @display(description="State", label=STATES)
    def state(self, budget: Budget) -> str:
        if not budget.enabled:
            return "off"
        standing = self._of(budget)
        if standing is None or standing.percent is None:
            return "rebuilding"
        if standing.percent >= 100:
            return "used up"
        return "warned" if any(standing.percent >= percent for percent in budget.thresholds) else "fine"

    @display(description="Amount", ordering="amount")
    def limit(self, budget: Budget) -> SafeString:
        return _money(self._of(budget), "amount", budget)

    @display(description="Spent")
    def spent(self, budget: Budget) -> SafeString:
        return _money(self._of(budget), "spent", budget)

    @display(description="Held")
    def held(self, budget: Budget) -> SafeString:
        return _money(self._of(budget), "held", budget)

    @display(description="Left")
    def left(self, budget: Budget) -> SafeString:
        return _money(self._of(budget), "left", budget)

    @display(description="Used")
    def used(self, budget: Budget) -> SafeString:
        standing = self._of(budget)
        return number(standing.percent if standing else None, "%", digits=1)

    @display(description="This period")
    def stands(self, budget: Budget) -> SafeString | str:
        if budget._state.adding:
            return "It is counted from the beginning of the present period."
        parts = [f"{name} {_money(self._of(budget), name, budget)}" for name in ("spent", "held", "left")]
        return format_html("{}, {}, {}", *map(SafeString, parts))

    @action(description="Reset: begin the present period anew, on record", permissions=["change"])
    def reset(self, request: HttpRequest, budgets: QuerySet[Budget]) -> HttpResponse | None:
        if asking := question(
            self, request, budgets, action="reset", title="Begin these budgets anew?",
            effect="What is spent in the present period counts no more, so that as much may be spent again. What runs "
            "stays held. The ledger and invoices keep everything; the adjustment is on record with your name.",
            button="Reset", wants_reason=True,
        ):  # fmt: skip
            return asking
        who, origin = request.user.get_username(), audit.origin_of(request)
        try:
            with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=10) as client:
                for budget in budgets:
                    reset_budget(client, budget=budget, who=who, origin=origin, reason=reason_of(request))
        except redis.RedisError as error:
            self.message_user(request, f"Redis is away, not all were reset: {error}", messages.ERROR)
            return None
        self.message_user(request, f"{len(budgets)} begin anew. What runs stays held.", messages.SUCCESS)
        return None


def _note_standings(budgets: list[Budget]) -> None:
    """Put on each budget how it stands, `standing`, in one question for all of them."""
    found: Sequence[Standing | None]
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=1) as client:
            found = standings(client, budgets)
    except redis.RedisError:
        found = [None] * len(budgets)
    for budget, standing in zip(budgets, found, strict=True):
        budget.standing = standing  # type: ignore[attr-defined]


def _money(standing: Standing | None, name: str, budget: Budget) -> SafeString:
    amount: Decimal | None = getattr(standing, name) if standing and budget.enabled else None
    return total(amount, budget.tenant.currency)


@admin.register(BudgetAdjustment)
class BudgetAdjustmentAdmin(GrowingList):
    list_display = ("at", "budget", "amount", "who", "reason")
    fields = (("budget", "window_start"), ("amount", "at"), ("who", "reason"))
    readonly_fields = ("amount",)

    @display(description="Added to what is spent")
    def amount(self, adjustment: BudgetAdjustment) -> SafeString:
        return cost(Decimal(adjustment.nano).scaleb(-9), adjustment.budget.tenant.currency)


@admin.register(BudgetAlert)
class BudgetAlertAdmin(GrowingList):
    list_display = ("at", "budget", "reached", "spent_then", "of_amount", "told")
    list_select_related = ("budget__tenant",)
    list_filter = (("tenant", AutocompleteSelectFilter),)
    list_filter_submit = True
    fields = (("budget", "window_start"), ("reached", "at"), ("spent_then", "of_amount"), "told")
    readonly_fields = ("reached", "spent_then", "of_amount", "told")

    @display(description="Share of the amount", ordering="threshold")
    def reached(self, alert: BudgetAlert) -> SafeString:
        return number(alert.threshold, "%")

    @display(description="Spent")
    def spent_then(self, alert: BudgetAlert) -> SafeString:
        return total(alert.spent, alert.budget.tenant.currency)

    @display(description="Of the amount")
    def of_amount(self, alert: BudgetAlert) -> SafeString:
        return total(alert.amount, alert.budget.tenant.currency)

    @display(description="Told")
    def told(self, alert: BudgetAlert) -> str:
        return ", ".join(f"{n.email or n.endpoint} ({n.state})" for n in alert.notices.all()) or "nobody"


@admin.register(Notice)
class NoticeAdmin(GrowingList):
    list_display = ("alert", "place", "state_label", "attempts", "last_at", "answer")
    list_filter = ("state",)
    fields = (("alert", "place"), ("state", "attempts"), ("last_at", "next_at"), "answer")
    readonly_fields = ("place",)

    @display(description="Where to")
    def place(self, notice: Notice) -> str:
        return notice.email or str(notice.endpoint)

    @display(description="State", label={"waiting": "warning", "delivered": "success", "failed": "danger"})
    def state_label(self, notice: Notice) -> str:
        return notice.state


class WebhookForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = WebhookEndpoint
        fields = ("tenant", "enabled", "url")

    def clean_url(self) -> str:
        url: str = self.cleaned_data["url"]
        if "url" in self.changed_data:
            try:
                check_address(url=url)
            except InvalidWrite as invalid:
                raise forms.ValidationError(str(invalid)) from None
        return url


@admin.register(WebhookEndpoint)
class WebhookEndpointAdmin(ModelAdmin):
    form = WebhookForm
    list_display = ("url", "tenant", "enabled", "created_at")
    list_filter = (("tenant", AutocompleteSelectFilter), "enabled")
    list_filter_submit = True
    search_fields = ("url", "tenant__slug")
    autocomplete_fields = ("tenant",)
    fields = (("tenant", "enabled"), "url")

    def has_delete_permission(self, request: HttpRequest, obj: WebhookEndpoint | None = None) -> bool:
        """One that was told of something is on record: it is switched off instead."""
        allowed: bool = super().has_delete_permission(request, obj)
        return allowed and obj is not None and not Notice.objects.filter(endpoint=obj).exists()

    def save_model(self, request: HttpRequest, obj: WebhookEndpoint, form: Any, change: bool) -> None:
        if change:
            change_webhook(webhook=obj, **{name: form.cleaned_data[name] for name in form.changed_data})
            return
        added = add_webhook(tenant=obj.tenant_id, url=obj.url, enabled=obj.enabled)
        obj.pk = added.webhook.pk
        self.message_user(
            request, f"Shown once: the secret that signs what is posted there is {added.secret}", messages.WARNING
        )

    def delete_model(self, request: HttpRequest, obj: WebhookEndpoint) -> None:
        remove_webhook(webhook=obj)
