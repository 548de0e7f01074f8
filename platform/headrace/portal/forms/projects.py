"""What a member says of a project."""

from typing import Any

from django import forms

from headrace.portal.forms.ceilings import CeiledForm
from tenants.models import LIMIT_FIELDS, Project, Tenant


class ProjectForm(CeiledForm):
    """A new project, or what may change of one. Its short name stays: records and budgets refer to it."""

    class Meta:
        model = Project
        fields = ("name", "slug", *LIMIT_FIELDS)
        labels = {"slug": "Short name"}
        help_texts = {"slug": "As it stands in records and exports; it never changes. a-z, 0-9, dot, dash, underscore."}

    def __init__(self, tenant: Tenant, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance._state.adding:
            self.instance.tenant = tenant
        else:
            del self.fields["slug"]

    @property
    def basics(self) -> list[forms.BoundField]:
        return [field for field in self if field.name not in LIMIT_FIELDS]

    @property
    def has_limits(self) -> bool:
        return any(field.value() not in (None, "") or field.errors for field in self.limits)

    def clean_slug(self) -> str:
        slug: str = self.cleaned_data["slug"]
        if Project.objects.of(self.instance.tenant_id).filter(slug=slug).exists():
            raise forms.ValidationError("There is a project of this short name.")
        return slug
