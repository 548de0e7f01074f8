"""How the admin's lists show values: numbers aligned, times to the second, nothing that looks like zero but is not; and
how its dialogs end."""

from decimal import Decimal

from django.http import HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString


def number(value: float | Decimal | None, unit: str = "", *, digits: int = 0) -> SafeString:
    """Aligned to the right, thousands apart; None is a dash, never 0."""
    if value is None:
        return format_html('<span class="hr-number hr-none">{}</span>', "\u2013")
    text = f"{value:,.{digits}f}" if digits or isinstance(value, float) else f"{value:,}"
    return format_html('<span class="hr-number">{}{}</span>', text, f"\u00a0{unit}" if unit else "")


def refreshed() -> HttpResponse:
    """What a dialog answers that has done its work: the page behind it is loaded anew."""
    response = HttpResponse(status=200)
    response["HX-Refresh"] = "true"
    return response
