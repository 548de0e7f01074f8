"""The arithmetic of engine cost, exact in Decimal until a quotient is rounded once, to six decimal places.

    per million output tokens  = cost / output x 10^6
    per million of all tokens  = cost / (uncached input + cached input + output) x 10^6
    full load                  = cost of a replica-hour / output of a replica-hour in the best sustained hour x 10^6
    utilisation                = output of a replica-hour / that of the best sustained hour
    break-even utilisation     = full load / what a hosted provider asks for the same tokens, per million output tokens

The last holds because at a utilisation u our tokens cost full load / u: below it the provider is cheaper. Above 1 the
provider is cheaper at any load.
"""

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from typing import NamedTuple

MILLION = Decimal(10**6)
_PLACES = Decimal("0.000001")


class Tokens(NamedTuple):
    uncached: int = 0
    cached: int = 0
    output: int = 0

    @property
    def all(self) -> int:
        return self.uncached + self.cached + self.output


NONE = Tokens()


def together(parts: Sequence[Tokens]) -> Tokens:
    return parts[0] if len(parts) == 1 else Tokens(*map(sum, zip(*parts, strict=True)))


def per_million(cost: Decimal | None, tokens: int) -> Decimal | None:
    """None where there are no tokens, or no cost is known."""
    if cost is None or tokens <= 0:
        return None
    return rounded(cost * MILLION / tokens)


def full_load(cost: Decimal | None, up_hours: float, best: float | None) -> Decimal | None:
    """`cost` of `up_hours` replica-hours, had each written as much as one did in the best hour; per million."""
    if cost is None or up_hours <= 0 or not best or best <= 0:
        return None
    return rounded(cost / Decimal(str(up_hours)) * MILLION / Decimal(str(best)))


def utilisation(output: int, up_hours: float, best: float | None) -> float | None:
    return None if up_hours <= 0 or not best or best <= 0 else output / up_hours / best


def break_even(full: Decimal | None, hosted: Decimal | None) -> float | None:
    return None if full is None or hosted is None or hosted <= 0 else float(full / hosted)


def shared(amount: Decimal, weights: Sequence[int]) -> list[Decimal]:
    """`amount` in proportion to `weights`, evenly where they are all 0. The parts add up to the rounded amount."""
    weights = weights if any(weights) else [1] * len(weights)
    whole, running, parts = sum(weights), 0, list[Decimal]()
    before = rounded(Decimal(0))
    for weight in weights:
        running += weight
        after = rounded(amount * running / whole)
        parts.append(after - before)
        before = after
    return parts


def rounded(amount: Decimal) -> Decimal:
    return amount.quantize(_PLACES, ROUND_HALF_EVEN)
