"""Amounts of money: rounded to a currency's minor unit, and written. Whoever writes one does it by a function of this.

    plain        1234.5             machines, and forms that are typed into: all digits, no idle ones
    priced       1,234.5625 EUR     what a price says, and one request's cost: all digits, at least the minor unit's
    summed       1,234.50 EUR       what is invoiced or budgeted: to the minor unit
    spent        0.001235 EUR       what use cost: to the minor unit, below one to a millionth
    column       0.001235           the same in a column of them: to a millionth in every line, so that they align
    telling      0.00012            figures of a report: so many places, more where those would show nothing

None is not known: a dash, or `unpriced` where use has no price; never a zero. What is too small for its places is said
to be less than the smallest that they can show. Minor units are JPY 0, USD 2, KWD 3 decimals; rounding is half to even.
"""

from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Context, Decimal

from headrace_core.currencies import MINOR_UNITS

_EXACT = Context(prec=60, rounding=ROUND_HALF_EVEN)
ZERO = Decimal(0)
UNKNOWN, UNPRICED = "\u2013", "unpriced"
_MINUS = "\u2212"
_MILLIONTH = 6


def places(currency: str) -> int:
    """Decimals of the currency's minor unit; 2 for a code that ISO 4217 does not know."""
    return MINOR_UNITS.get(currency, 2)


def rounded(amount: Decimal, currency: str) -> Decimal:
    """0.005 is 0.00, 0.015 is 0.02, 2.675 is 2.68 in USD."""
    return _EXACT.quantize(amount, Decimal(1).scaleb(-places(currency)))


def whole_units(amount: Decimal, currency: str) -> Decimal:
    """The whole minor units in `amount`: of a credit no more may be used than there is."""
    return amount.quantize(Decimal(1).scaleb(-places(currency)), ROUND_DOWN)


def shown(amount: Decimal, currency: str) -> str:
    """`amount`, already whole minor units, with exactly the currency's decimals."""
    return f"{amount:.{places(currency)}f}"


def percent_of(amount: Decimal, percent: Decimal) -> Decimal:
    """Exact: both have few enough digits."""
    return _EXACT.scaleb(_EXACT.multiply(amount, percent), -2)


def plain(number: Decimal) -> str:
    """Digits without an exponent and without trailing zeros."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def priced(amount: Decimal | str | None, currency: str, *, unknown: str = UNKNOWN) -> str:
    if amount is None:
        return unknown
    whole, _, digits = f"{Decimal(amount):,f}".partition(".")
    digits = digits.rstrip("0").ljust(places(currency), "0")
    return f"{whole}.{digits} {currency}" if digits else f"{whole} {currency}"


def summed(amount: Decimal | str | None, currency: str) -> str:
    return UNKNOWN if amount is None else f"{_to(Decimal(amount), places(currency))} {currency}"


def spent(amount: Decimal | None, currency: str) -> str:
    if amount is None:
        return UNPRICED
    is_whole = not amount or abs(amount) >= 1
    return f"{_to(amount, places(currency) if is_whole else _MILLIONTH)} {currency}"


def column(amount: Decimal | None) -> str:
    return UNPRICED if amount is None else _to(amount, _MILLIONTH)


def telling(value: Decimal | None, decimals: int = 4) -> str:
    """As many places more as show the first digits of a small value, nine at most; "-" where there is none."""
    if value is None:
        return "-"
    while value and decimals < 9 and abs(value) < Decimal(1).scaleb(1 - decimals):
        decimals += 1
    return f"{value:,.{decimals}f}"


def _to(amount: Decimal, decimals: int) -> str:
    least = Decimal(1).scaleb(-decimals)
    if amount and abs(amount) < least:
        return f"{_MINUS if amount < 0 else ''}< {least:f}"
    return f"{_EXACT.quantize(amount, least):,f}".replace("-", _MINUS)
