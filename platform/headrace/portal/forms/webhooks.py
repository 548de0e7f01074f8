"""Where a member wants alerts posted to."""

from typing import Any

from django import forms
from django.core.validators import URLValidator

from billing.budgets.webhooks import check_address
from billing.models import WebhookEndpoint
from headrace_core.writes import InvalidWrite
from tenants.models import Tenant


class WebhookForm(forms.Form):
    url = forms.CharField(
        max_length=500,
        label="Address",
        help_text="Alerts are posted there as JSON, signed. It has to be on the public network, and to answer within "
        "seconds; redirects are not followed.",
        widget=forms.URLInput({"placeholder": "https://\u2026", "autocomplete": "off"}),
        validators=[URLValidator(schemes=["https", "http"])],
    )

    def __init__(self, tenant: Tenant, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.tenant = tenant

    def clean_url(self) -> str:
        url: str = self.cleaned_data["url"]
        try:
            check_address(url=url)
        except InvalidWrite as invalid:
            raise forms.ValidationError(str(invalid)) from None
        if WebhookEndpoint.objects.filter(tenant=self.tenant, url=url).exists():
            raise forms.ValidationError("Alerts go there already.")
        return url
