"""What a member says of an API key."""

from datetime import timedelta
from typing import Any

from django import forms
from django.utils import timezone

from headrace.portal.forms.ceilings import CeiledForm
from routing.models import Model
from tenants.models import LIMIT_FIELDS, ApiKey, Project, Tenant

OVERLAPS = (
    ("0", "none: the old secret stops at once"),
    ("3600", "1 hour"),
    ("86400", "1 day"),
    ("604800", "7 days"),
)


class ProjectField(forms.ModelChoiceField):  # type: ignore[type-arg]
    def label_from_instance(self, obj: Project) -> str:
        return obj.name


class KeyForm(CeiledForm):
    """A new key, or what may change of one. The project stays: records and budgets refer to it."""

    models = forms.MultipleChoiceField(
        required=False,
        label="Models it may call",
        widget=forms.CheckboxSelectMultiple,
        help_text="None ticked: all, also those to come.",
    )

    class Meta:
        model = ApiKey
        fields = ("name", "project", "models", "priority", "expires_at", *LIMIT_FIELDS)
        labels = {"expires_at": "Expires", "priority": "Priority class"}
        help_texts = {
            "name": "What you will know it by, such as the application that uses it.",
            "priority": "Which requests go first when all replicas are busy.",
        }
        widgets = {"expires_at": forms.DateTimeInput({"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")}

    def __init__(self, tenant: Tenant, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["expires_at"].help_text = f"Time zone {timezone.get_current_timezone_name()}. Empty: never."
        names = {*Model.objects.filter(enabled=True).values_list("name", flat=True), *(self.instance.models or [])}
        self.fields["models"].choices = [(name, name) for name in sorted(names)]  # type: ignore[attr-defined]
        if not names:
            del self.fields["models"]
        if self.instance._state.adding:
            self.instance.tenant = tenant
            self.fields["project"] = ProjectField(Project.objects.of(tenant).order_by("slug"), empty_label=None)
        else:
            del self.fields["project"]

    @property
    def has_limits(self) -> bool:
        """Whether any is set, or wrong: they are folded away else."""
        return any(field.value() not in (None, "") or field.errors for field in self.limits)

    @property
    def basics(self) -> list[forms.BoundField]:
        return [field for field in self if field.name not in LIMIT_FIELDS]

    def clean_expires_at(self) -> Any:
        moment = self.cleaned_data["expires_at"]
        if moment and moment <= timezone.now() and "expires_at" in self.changed_data:
            raise forms.ValidationError("This moment has passed. To stop a key now, revoke it.")
        return moment


class RotateForm(forms.Form):
    """`hint` is the ending of the secret that the page showed: sent twice, the form rotates once."""

    overlap = forms.ChoiceField(
        choices=OVERLAPS,
        initial="86400",
        label="Overlap",
        help_text="How long the old secret works beside the new one.",
    )
    hint = forms.CharField(max_length=4, widget=forms.HiddenInput)

    @property
    def span(self) -> timedelta:
        return timedelta(seconds=int(self.cleaned_data["overlap"]))


class FindForm(forms.Form):
    """A key's text, looked up by its digest and forgotten."""

    text = forms.CharField(
        max_length=256,
        label="A key's text",
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false", "placeholder": "sk-hr-\u2026"}),
        help_text="Found one in a log or a repository? Paste it to see whose it is. It is not stored.",
    )
