"""Where a member wants alerts posted to."""

from typing import Any

from django import forms
from django.core.validators import URLValidator

from billing.budgets.outgoing import NotAllowed, check_url
from billing.models import WebhookEndpoint
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
            check_url(url)
        except NotAllowed as error:
            raise forms.ValidationError(f"{str(error)[:1].upper()}{str(error)[1:]}.") from None
        if WebhookEndpoint.objects.filter(tenant=self.tenant, url=url).exists():
            raise forms.ValidationError("Alerts go there already.")
        return url
