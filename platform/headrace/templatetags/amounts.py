"""Template filters over quantities.py and, for what use cost, billing/amounts.py."""

from decimal import Decimal
from typing import Any

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from billing import amounts as written
from headrace import quantities

register = template.Library()


@register.filter
def money(amount: Decimal | None, currency: str) -> str:
    return written.spent(amount, currency)


@register.filter
def column(amount: Decimal | None) -> str:
    return written.column(amount)


@register.filter
def exact(amount: Decimal | None, currency: str) -> str:
    return written.priced(amount, currency, unknown=written.UNPRICED)


@register.filter
def count(number: int | None) -> str:
    return quantities.count(number)


@register.filter
def share(part: int, whole: int) -> str:
    return quantities.share(part, whole)


@register.filter
def duration(milliseconds: float | None) -> str:
    return quantities.duration(milliseconds)


@register.filter
def of(mapping: Any, key: Any) -> Any:
    """`mapping[key]`, else the key itself: a name where there is one."""
    return mapping.get(key, key)


@register.filter
def breakable(name: Any) -> SafeString:
    """A key's name (`project/name`, `playground of ann@acme.example`), which a narrow column breaks there first."""
    return mark_safe(escape(name).replace("/", "/<wbr>").replace("@", "<wbr>@"))
