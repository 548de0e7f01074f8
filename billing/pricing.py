"""What use costs: the arithmetic of prices, exact and pure. Every amount of Headrace comes from here.

    cost = ((input - cached) x rates.input + cached x rates.cached_input + output x rates.output) / 10^6

with tokens as counts (cached is a part of input) and rates in a currency's units per million tokens, of at most six
decimal places; so a cost has at most twelve, and is never rounded. Budgets count whole 1e-9 units: `nano`, the ceiling,
or as much as a counter can hold where that is less: more than any budget (billing/models/budget.py) is all the same.
Costs at the same rates add up: the cost of sums is the sum of costs, which is why invoices may be made from rollups.
"""

from decimal import Context, Decimal, Inexact
from math import ceil

import msgspec

from tenants.meters.meter import MOST_NANO

PLACES = 6
_EXACT = Context(prec=60, traps=[Inexact])


class Rates(msgspec.Struct, frozen=True, array_like=True):
    """Units of a currency per million tokens: uncached input, cached input, output."""

    input: Decimal
    cached_input: Decimal
    output: Decimal


def cost(rates: Rates, *, input_tokens: int, cached_input_tokens: int, output_tokens: int) -> Decimal:
    """The exact cost of so many tokens, in units of the rates' currency. Raises decimal.Inexact, never rounds."""
    total = _EXACT.multiply(input_tokens - cached_input_tokens, rates.input)
    total = _EXACT.fma(cached_input_tokens, rates.cached_input, total)
    total = _EXACT.fma(output_tokens, rates.output, total)
    return _EXACT.scaleb(total, -6)


def nano(amount: Decimal) -> int:
    """`amount` in units of 1e-9, rounded up: what budgets hold and spend. Within MOST_NANO either way."""
    return max(-MOST_NANO, min(MOST_NANO, ceil(_EXACT.scaleb(amount, 9))))


def worst_nano(rates: Rates, *, input_tokens: int, output_tokens: int) -> int:
    """The most that so many tokens may cost in 1e-9 units, whether the input turns out to be cached or not."""
    dearest = Rates(max(rates.input, rates.cached_input), rates.cached_input, rates.output)
    return nano(cost(dearest, input_tokens=input_tokens, cached_input_tokens=0, output_tokens=output_tokens))


def text(amount: Decimal) -> str:
    """`amount` as plain digits, as events and exports carry it."""
    return format(amount, "f")
