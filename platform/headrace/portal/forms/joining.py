"""The password of somebody new."""

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import password_validators_help_texts, validate_password

from tenants.models.display_names import check_display_name


class NewPasswordForm(forms.Form):
    name = forms.CharField(
        max_length=150,
        label="Your name",
        widget=forms.TextInput({"autocomplete": "name"}),
        validators=[check_display_name],
    )
    password = forms.CharField(
        label="Password", widget=forms.PasswordInput({"autocomplete": "new-password"}), strip=False
    )
    again = forms.CharField(
        label="The same once more", widget=forms.PasswordInput({"autocomplete": "new-password"}), strip=False
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        self.fields["password"].help_text = " ".join(password_validators_help_texts())

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        validate_password(password, self.user)
        return password

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if "password" in cleaned and cleaned["password"] != cleaned.get("again"):
            self.add_error("again", "The two passwords differ.")
        return cleaned
