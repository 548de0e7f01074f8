"""Rounding to a currency's minor unit: JPY 0, USD 2, KWD 3 decimals; half to even, once, at the line."""

from decimal import ROUND_HALF_EVEN, Context, Decimal

from tenants.currencies import MINOR_UNITS

_EXACT = Context(prec=60, rounding=ROUND_HALF_EVEN)
ZERO = Decimal(0)


def places(currency: str) -> int:
    """Decimals of the currency's minor unit; 2 for a code that ISO 4217 does not know."""
    return MINOR_UNITS.get(currency, 2)


def rounded(amount: Decimal, currency: str) -> Decimal:
    """0.005 is 0.00, 0.015 is 0.02, 2.675 is 2.68 in USD."""
    return _EXACT.quantize(amount, Decimal(1).scaleb(-places(currency)))


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
