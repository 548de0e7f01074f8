"""Template filters over portal/cash.py."""

from decimal import Decimal

from django import template

from headrace.portal import cash as sums

register = template.Library()


@register.filter
def cash(amount: Decimal | str | None, currency: str) -> str:
    return sums.cash(amount, currency)


@register.filter
def rate(amount: Decimal | str | None, currency: str) -> str:
    return sums.rate(amount, currency)
