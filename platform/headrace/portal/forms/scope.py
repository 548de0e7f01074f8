"""Whose use a budget or a limit counts: a project, a key, a model, or all of the tenant."""

from typing import Any

from django import forms

from routing.models import Model
from tenants.models import ApiKey, Project, Tenant

SUGGESTED = 200  # keys that a field offers; any other is found by its public id


class ScopeFields:
    """What forms with `project`, `key` and `model` share: texts, so that what they name may go and stay on record."""

    tenant: Tenant
    fields: dict[str, Any]
    suggested: list[ApiKey]

    def offer(self, *, sees_keys: bool, sees_projects: bool = True, any_model: str = "") -> None:
        """Fill the choices. `any_model` is what no model is called; without it one has to be chosen."""
        projects = Project.objects.of(self.tenant).order_by("slug").values_list("slug", "name")
        everything = ("", f"all of {self.tenant.name}" if any_model else "none: a key's limit")
        self.fields["project"] = forms.ChoiceField(
            choices=[everything, *projects], required=False, label="Project", help_text=""
        )
        models = Model.objects.filter(enabled=True).order_by("name").values_list("name", flat=True)
        empty = [("", any_model)] if any_model else []
        self.fields["model"] = forms.ChoiceField(
            choices=[*empty, *((name, name) for name in models)], required=not any_model, label="Model"
        )
        self.fields["key"] = forms.CharField(
            required=False,
            max_length=200,
            label="API key",
            help_text="A key's public id or name; empty: all of the project.",
            widget=forms.TextInput({"list": "known-keys", "autocomplete": "off", "spellcheck": "false"}),
        )
        self.suggested = []
        if not sees_keys:
            del self.fields["key"]
        else:
            live = ApiKey.objects.of(self.tenant).filter(revoked_at=None).select_related("project")
            self.suggested = list(live.order_by("project__slug", "name")[:SUGGESTED])
        if not sees_projects:
            del self.fields["project"]

    def find_key(self, text: str, project: str) -> str:
        """The public id of the key meant. Raises ValidationError."""
        mine = ApiKey.objects.of(self.tenant).select_related("project")
        key = mine.filter(pk=text).first()
        if key is None:
            named = mine.filter(name=text, revoked_at=None)
            found = list((named.filter(project__slug=project) if project else named)[:2])
            if len(found) > 1:
                raise forms.ValidationError("Several keys have this name: give the public id, or the project too.")
            if not found:
                raise forms.ValidationError(f"{self.tenant.name} has no such key.")
            key = found[0]
        if project and key.project.slug != project:
            raise forms.ValidationError("This key is not of that project.")
        return str(key.pk)
