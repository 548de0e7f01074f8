"""Template filters over billing/amounts.py: sums and prices."""

from decimal import Decimal

from django import template

from billing import amounts

register = template.Library()


@register.filter
def cash(amount: Decimal | str | None, currency: str) -> str:
    return amounts.summed(amount, currency)


@register.filter
def rate(amount: Decimal | str | None, currency: str) -> str:
    return amounts.priced(amount, currency)
