"""The limits in forms of projects, keys and models: each up to what an operator set there."""

from typing import Any

from django import forms

from tenants.models import LIMIT_FIELDS


class CeiledForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form whose model is one of `CeiledLimits`. The database refuses what passes a ceiling; this says so."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, ceiling in self.instance.ceilings.items():
            self.fields[name].help_text += f" At most {ceiling:,}: set by your operator."

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        for name, ceiling in self.instance.ceilings.items():
            if name not in self.errors and not 0 < (cleaned.get(name) or 0) <= ceiling:
                self.add_error(name, f"Your operator set {ceiling:,} here: it may be that or less.")
        return cleaned

    @property
    def changes(self) -> dict[str, Any]:
        """What the form changes, once it is valid, by field."""
        return {name: self.cleaned_data[name] for name in self.changed_data}

    @property
    def limits(self) -> list[forms.BoundField]:
        return [self[name] for name in LIMIT_FIELDS]
