"""Sums of money as budgets and invoices show them: in the currency's own minor unit, with thousands set apart."""

from decimal import Decimal

from billing.invoicing.amounts import places, rounded

_MINUS = "\u2212"


def cash(amount: Decimal | str | None, currency: str) -> str:
    """1234.5 is `1,234.50 EUR`, `1,234 JPY`. What is less than a minor unit and not nothing is said to be; None is a
    dash: not known."""
    if amount is None:
        return "\u2013"
    amount = Decimal(amount)
    least = Decimal(1).scaleb(-places(currency))
    if amount and abs(amount) < least:
        return f"{_MINUS if amount < 0 else ''}< {least:f} {currency}"
    return f"{rounded(amount, currency):,f} {currency}".replace("-", _MINUS)


def rate(amount: Decimal | str | None, currency: str) -> str:
    """A price: all its digits, at least those of the minor unit."""
    if amount is None:
        return "\u2013"
    whole, _, digits = f"{Decimal(amount):,f}".partition(".")
    digits = digits.rstrip("0").ljust(places(currency), "0")
    return f"{whole}.{digits} {currency}" if digits else f"{whole} {currency}"
