"""How the admin's lists show amounts (billing/amounts.py), aligned to the right."""

from decimal import Decimal

from django.utils.html import format_html
from django.utils.safestring import SafeString

from billing import amounts


def cost(amount: Decimal | None, currency: str) -> SafeString:
    """Of use: to a millionth."""
    text = amounts.column(amount)
    if amount is None:
        return format_html('<span class="hr-number hr-none">{}</span>', text)
    return format_html('<span class="hr-number">{}\u00a0{}</span>', text, currency)


def total(amount: Decimal | None, currency: str) -> SafeString:
    """Of a budget or an invoice: to the minor unit."""
    kind = "hr-number hr-none" if amount is None else "hr-number"
    return format_html('<span class="{}">{}</span>', kind, amounts.summed(amount, currency).replace(" ", "\u00a0"))
