"""What a request will be charged: the price at each target that may serve it, and the most it may come to."""

from billing import pricing
from billing.price_book import PriceBook, Quote
from routing.catalog import Route
from tenants.keyring import Principal

Quotes = dict[str, Quote | None]


def quotes_of(prices: PriceBook, principal: Principal, route: Route, at_ms: int) -> Quotes:
    """By target of the route, any of which may come to serve: its price at `at_ms` (epoch ms); None: it has none."""
    return {
        target.name: prices.find(
            model=route.model,
            target=target.name,
            tenant=principal.tenant,
            currency=principal.currency,
            at_ms=at_ms,
        )
        for target in route.targets
        if target.shadow is None  # copies cost their tenant nothing
    }


def worst_cost(quotes: Quotes, prompt: int, output: int) -> int:
    """What so many tokens cost at most, at the dearest target, in 1e-9 units; 0 where nothing has a price."""
    rates = [quote.rates for quote in quotes.values() if quote is not None]
    return max((pricing.worst_nano(rate, input_tokens=prompt, output_tokens=output) for rate in rates), default=0)
