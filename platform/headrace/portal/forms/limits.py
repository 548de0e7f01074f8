"""What a member says of the limits that a project or a key has for one model."""

from typing import Any

from django import forms

from headrace.portal.forms.ceilings import CeiledForm
from headrace.portal.forms.scope import ScopeFields
from tenants.limits import add_model_limits, set_limits
from tenants.models import LIMIT_FIELDS, ModelLimits, Tenant


class ModelLimitsForm(ScopeFields, CeiledForm):
    """New limits, or other numbers of those there are: whose they are stays."""

    class Meta:
        model = ModelLimits
        fields = LIMIT_FIELDS

    def __init__(
        self, tenant: Tenant, *args: Any, sees_keys: bool = True, sees_projects: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.tenant, self.suggested = tenant, []
        if self.instance._state.adding:
            self.instance.tenant = tenant
            self.offer(sees_keys=sees_keys, sees_projects=sees_projects)

    @property
    def scope(self) -> list[forms.BoundField]:
        return [self[name] for name in ("project", "key", "model") if name in self.fields]

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors and not any(cleaned.get(name) for name in LIMIT_FIELDS):
            raise forms.ValidationError("Give one limit at least.")
        if not self.instance._state.adding:
            return cleaned
        project, key = cleaned.get("project", ""), cleaned.get("key", "").strip()
        if key:
            try:
                project, key = "", self.find_key(key, project)
            except forms.ValidationError as error:
                self.add_error("key", error)
                return cleaned
        if not project and not key:
            raise forms.ValidationError("Say whose limits these are: a project's or a key's.")
        self.instance.project, self.instance.key, self.instance.model = project, key, cleaned.get("model", "")
        same = ModelLimits.objects.of(self.tenant).filter(project=project, key=key, model=self.instance.model)
        if same.exists():
            raise forms.ValidationError("There are limits of these for this model already: change those.")
        return cleaned

    def write(self) -> ModelLimits:
        row: ModelLimits = self.instance
        limits: Any = {name: self.cleaned_data[name] for name in LIMIT_FIELDS}
        if row._state.adding:
            return add_model_limits(tenant=self.tenant.pk, model=row.model, project=row.project, key=row.key, **limits)
        set_limits(holder=row, **limits)
        return row
