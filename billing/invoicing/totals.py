"""From usage lines to a total: discount, minimum fee, credits and tax, each a line of its own.

Every line is rounded once, half to even, to the currency's minor unit, and the invoice is the sum of its lines:

    discount     - discount_percent x the exact (unrounded) amounts of usage, at most their rounded sum; the same
                 again for adjustments, which may be less than nothing: then it takes the discount on them back
    minimum fee  what this period's usage after its discount lacks of the fee; its amount makes usage, discount, fee
                 together the fee to the last minor unit. Adjustments come on top
    credits      oldest first, as far as the sum of the lines so far, in whole minor units
    tax          tax_rate x the exact amounts of all lines above, rounded once: not a sum of taxes of rounded lines
    total        = the sum of all lines = net + tax
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from billing.amounts import ZERO, percent_of, plain, rounded, whole_units
from billing.invoicing.lines import Kind, amount_sum, exact_sum
from billing.models import Credit, InvoiceLine


@dataclass(frozen=True)
class Terms:
    """What a tenant agreed to; the default is nothing at all."""

    tax_rate: Decimal = ZERO
    discount_percent: Decimal = ZERO
    minimum_fee: Decimal = ZERO


def with_totals(
    lines: list[InvoiceLine], terms: Terms, credits: Iterable[tuple[Credit, Decimal]], *, month: date, currency: str
) -> list[InvoiceLine]:
    """`lines` (usage and adjustments) and those that follow from them, numbered from 1."""

    def line(
        kind: str, description: str, exact: Decimal, amount: Decimal | None = None, **fields: object
    ) -> InvoiceLine:
        amount = rounded(exact, currency) if amount is None else amount
        return InvoiceLine(kind=kind, period=month, description=description, exact=exact, amount=amount, **fields)

    all_lines = list(lines)
    usage = [one for one in lines if one.kind == Kind.USAGE]
    late = [one for one in lines if one.kind != Kind.USAGE]
    for group, name in ((usage, "Discount"), (late, "Discount on adjustments")):
        exact = -percent_of(exact_sum(group), terms.discount_percent)
        if exact:
            most = min if exact > 0 else max
            amount = most(rounded(exact, currency), -amount_sum(group))
            discount = line(Kind.DISCOUNT, f"{name}, {plain(terms.discount_percent)} %", exact, amount)
            all_lines.append(discount)
            group.append(discount)
    missing = terms.minimum_fee - exact_sum(usage)
    if terms.minimum_fee and missing > 0:
        words = f"Minimum fee for {month:%Y-%m}: the difference to {plain(terms.minimum_fee)} {currency}"
        all_lines.append(
            line(Kind.MINIMUM_FEE, words, missing, rounded(terms.minimum_fee, currency) - amount_sum(usage))
        )
    for credit, remaining in credits:
        applied = min(whole_units(remaining, currency), amount_sum(all_lines))
        if applied > 0:
            all_lines.append(line(Kind.CREDIT, f"Credit: {credit.reason}", -applied, credit=credit))
    if terms.tax_rate and all_lines:
        tax = percent_of(exact_sum(all_lines), terms.tax_rate)
        all_lines.append(line(Kind.TAX, f"Tax, {plain(terms.tax_rate)} %", tax))
    for position, one in enumerate(all_lines, start=1):
        one.position = position
    return all_lines
