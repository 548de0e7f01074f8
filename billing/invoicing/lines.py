"""The lines of an invoice, before totals: what the hours of a period add up to, less what was invoiced of it before.

A line is (project, model, token class, price version). Its quantity is a sum of the rollup's tokens, its exact amount
quantity x unit price / 10^6; a price is per token, so this equals the sum of the records' costs, which is checked.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from django.db.models import Sum

from billing.amounts import ZERO, rounded
from billing.models import Invoice, InvoiceLine, Price, UsageHour
from billing.periods import Period
from billing.usage import PRICING, SHADOW

Kind, TokenClass = InvoiceLine.Kind, InvoiceLine.TokenClass
_CLASSES = (TokenClass.UNCACHED, TokenClass.CACHED, TokenClass.OUTPUT)
_RATES = {TokenClass.UNCACHED: "input", TokenClass.CACHED: "cached_input", TokenClass.OUTPUT: "output"}
_WORDS = {
    TokenClass.UNCACHED: "uncached input tokens",
    TokenClass.CACHED: "cached input tokens",
    TokenClass.OUTPUT: "output tokens",
}


class Key(NamedTuple):
    project: str
    model: str
    token_class: str
    price: str


@dataclass
class Use:
    """What a period's hours say, in one currency: priced tokens by key, and what cannot be invoiced."""

    tokens: dict[Key, int] = field(default_factory=dict)
    prices: dict[str, Price] = field(default_factory=dict)
    unpriced_tokens: int = 0
    unknown_prices: list[str] = field(default_factory=list)
    costs_differ: list[str] = field(default_factory=list)


def use_of(tenant: str, period: Period, currency: str) -> Use:
    """Sum the hours of `period` in `currency`. Shadow copies cost the tenant nothing."""
    use = Use()
    rows = (
        UsageHour.objects.of(tenant)
        .filter(hour__gte=period.start, hour__lt=period.end, currency=currency)
        .exclude(kind=SHADOW)
        .order_by()
        .values_list("project", "model", "price", "kind")
        .annotate(Sum("input_tokens"), Sum("cached_input_tokens"), Sum("output_tokens"), Sum("cost"))
    )
    sums: dict[tuple[str, str, str], list[int]] = {}
    costs: dict[tuple[str, str, str], Decimal] = {}
    for project, model, price, kind, prompt, cached, output, cost in rows:
        if not price:
            use.unpriced_tokens += prompt + output
            continue
        if kind == PRICING:  # tokens of rows that had no price when they came
            use.unpriced_tokens -= prompt + output
        bucket = sums.setdefault((project, model, price), [0, 0, 0])
        for place, tokens in enumerate((prompt - cached, cached, output)):
            bucket[place] += tokens
        costs[project, model, price] = costs.get((project, model, price), ZERO) + cost
    use.prices = {price.version: price for price in Price.objects.filter(version__in={key[2] for key in sums})}
    for (project, model, version), bucket in sums.items():
        if version not in use.prices:
            use.unknown_prices.append(version)
            continue
        price = use.prices[version]
        tokens = dict(zip(_CLASSES, bucket, strict=True))
        if (
            sum(cost_of(count, unit_price(price, name)) for name, count in tokens.items())
            != costs[project, model, version]
        ):
            use.costs_differ.append(f"{project}/{model} at {version}")
        use.tokens |= {Key(project, model, name, version): count for name, count in tokens.items() if count}
    return use


def unit_price(price: Price, token_class: str) -> Decimal:
    """Per million tokens."""
    rate: Decimal = getattr(price, _RATES[TokenClass(token_class)])
    return rate


def cost_of(tokens: int, per_million: Decimal) -> Decimal:
    """Exact, to twelve places."""
    return (tokens * per_million).scaleb(-6)


def stated(tenant: str, month: date, currency: str, *, but: Invoice | None = None) -> dict[Key, int]:
    """The tokens of `month` that finalised invoices (`but` one) state, by key: as its usage, or adjustments for it."""
    lines = InvoiceLine.objects.filter(
        invoice__in=Invoice.objects.of(tenant).stating_usage().filter(currency=currency),
        kind__in=(Kind.USAGE, Kind.ADJUSTMENT),
        period=month,
    )
    if but is not None:
        lines = lines.exclude(invoice=but)
    rows = lines.order_by().values_list("project", "model", "token_class", "price").annotate(Sum("quantity"))
    return {Key(*row[:4]): row[4] for row in rows}


def usage_lines(use: Use, before: dict[Key, int], *, month: date, currency: str, kind: str) -> Iterator[InvoiceLine]:
    """Lines for what `use` has beyond `before`, in a stable order. Never twice: what was stated is taken off."""
    for key in sorted({*use.tokens, *before}, key=_order):
        quantity = use.tokens.get(key, 0) - before.get(key, 0)
        if not quantity or key.price not in use.prices:
            continue
        rate = unit_price(use.prices[key.price], key.token_class)
        exact = cost_of(quantity, rate)
        what = f"{key.model}, {_WORDS[TokenClass(key.token_class)]}"
        yield InvoiceLine(
            kind=kind,
            period=month,
            description=what if kind == Kind.USAGE else f"Adjustment for {month:%Y-%m}: {what}",
            project=key.project,
            model=key.model,
            token_class=key.token_class,
            price=key.price,
            quantity=quantity,
            unit_price=rate,
            exact=exact,
            amount=rounded(exact, currency),
        )


def _order(key: Key) -> tuple[str, str, str, int]:
    return key.project, key.model, key.price, _CLASSES.index(TokenClass(key.token_class))


def exact_sum(lines: Iterable[InvoiceLine]) -> Decimal:
    return sum((line.exact for line in lines), ZERO)


def amount_sum(lines: Iterable[InvoiceLine]) -> Decimal:
    return sum((line.amount for line in lines), ZERO)
