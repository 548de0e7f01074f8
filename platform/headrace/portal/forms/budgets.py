"""What a member says of a budget."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from django import forms
from django.utils import timezone

from billing.amounts import plain
from billing.budgets.terms import add_budget, change_budget
from billing.models import Budget, SetBy
from headrace.portal.forms.scope import ScopeFields
from tenants.models import Tenant
from tenants.models.names import check_slug

SCOPE = ("name", "project", "key", "model", "period")
TERMS = ("amount", "hard", "thresholds", "extra", "extra_until")
_KINDS = (
    ("hard", "Hard: a request that might pass it is refused"),
    ("soft", "Soft: people are told, nothing is refused"),
)
_PERIODS = (
    ("day", "day"),
    ("week", "week, from Monday"),
    ("month", "calendar month"),
    ("total", "once, without an end"),
)


class BudgetForm(ScopeFields, forms.ModelForm):  # type: ignore[type-arg]
    """A new budget, or what may change of one: whose use it counts, and in which period, stays."""

    hard = forms.TypedChoiceField(
        choices=_KINDS, coerce=lambda kind: kind == "hard", initial="hard", label="Kind", widget=forms.RadioSelect
    )

    class Meta:
        model = Budget
        fields = ("name", "period", *TERMS, "enabled")
        labels = {
            "name": "Short name",
            "thresholds": "Tell people at",
            "extra": "Increase",
            "extra_until": "Until",
            "enabled": "In force",
        }
        help_texts = {
            "name": "As errors, alerts and exports say it; it never changes. a-z, 0-9, dot, dash, underscore.",
            "thresholds": "Percents of the amount, parted by commas, each told once a period by e-mail and webhook. "
            "Empty: nobody is told.",
        }
        error_messages = {name: {"min_value": "An amount is more than 0."} for name in ("amount", "extra")}
        widgets = {"extra_until": forms.DateTimeInput({"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")}

    def __init__(self, tenant: Tenant, *args: Any, sees_keys: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.tenant, self.suggested = tenant, []
        money, zone = f"In {tenant.currency}.", timezone.get_current_timezone_name()
        self.fields["amount"].help_text = money
        self.fields["extra"].help_text = f"On top of the amount. {money}"
        self.fields["extra_until"].help_text = f"Time zone {zone}."
        if self.instance._state.adding:
            self.instance.tenant, self.instance.set_by = tenant, SetBy.TENANT
            self.fields["period"] = forms.ChoiceField(
                choices=_PERIODS,
                initial="month",
                help_text=f"Begins anew at midnight in {zone}.",
            )
            self.offer(sees_keys=sees_keys, any_model="all models")
            del self.fields["enabled"]
        else:
            for name in ("name", "period"):
                del self.fields[name]
            self.initial["hard"] = "hard" if self.instance.hard else "soft"
            for name in ("amount", "extra"):
                if (amount := self.initial[name]) is not None:
                    self.initial[name] = Decimal(plain(amount))

    def part(self, *names: str) -> list[forms.BoundField]:
        return [self[name] for name in names if name in self.fields]

    @property
    def scope(self) -> list[forms.BoundField]:
        return self.part("name", "project", "key", "model")

    @property
    def terms(self) -> list[forms.BoundField]:
        return self.part("amount", "period", "hard", "thresholds", "enabled")

    @property
    def increase(self) -> list[forms.BoundField]:
        return self.part("extra", "extra_until")

    @property
    def has_increase(self) -> bool:
        return any(field.value() not in (None, "") or field.errors for field in self.increase)

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        check_slug(name)
        if Budget.objects.of(self.tenant).filter(name=name).exists():
            raise forms.ValidationError("There is a budget of this short name.")
        return name

    def clean_extra_until(self) -> datetime | None:
        until: datetime | None = self.cleaned_data["extra_until"]
        if until is not None and until <= timezone.now() and "extra_until" in self.changed_data:
            raise forms.ValidationError("This moment has passed.")
        return until

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if text := cleaned.get("key", "").strip():
            try:
                cleaned["key"] = self.find_key(text, cleaned.get("project", ""))
                cleaned["project"] = ""  # the key says it
            except forms.ValidationError as error:
                self.add_error("key", error)
        if self.instance._state.adding:
            for name in ("project", "key", "model"):
                setattr(self.instance, name, cleaned.get(name, ""))
        return cleaned

    def write(self) -> Budget:
        budget: Budget = self.instance
        said: Any = self.cleaned_data
        if budget._state.adding:
            return add_budget(tenant=self.tenant.pk, set_by=SetBy.TENANT, **said)
        change_budget(budget=budget, **said)
        return budget
