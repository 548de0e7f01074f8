"""Whom a member invites, and into which role."""

from typing import Any

from django import forms

from headrace.portal.access import roles_given_by
from tenants.models import Role


class RoleForm(forms.Form):
    """A role out of those that the visitor may give."""

    role = forms.ChoiceField(initial=Role.DEVELOPER)

    def __init__(self, visitor: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        given = roles_given_by(visitor)
        choices = [(role.value, role.label) for role in Role if role.value in given]
        self.fields["role"].choices = choices  # type: ignore[attr-defined]


class InviteForm(RoleForm):
    email = forms.EmailField(max_length=150, label="E-mail address", widget=forms.EmailInput({"autocomplete": "off"}))
    field_order = ("email", "role")
