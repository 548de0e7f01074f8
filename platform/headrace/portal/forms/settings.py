"""What a tenant says of itself."""

from django import forms

from tenants.models import Tenant


class SettingsForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Tenant
        fields = ("name", "time_zone")
        help_texts = {
            "time_zone": "Days, months and budgets begin at midnight here, as in Europe/Berlin. Bills and budgets "
            "follow a change from the next month on.",
        }
