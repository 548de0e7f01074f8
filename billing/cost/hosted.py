"""What a hosted provider asks for the same tokens: by the price list of a provider's target, or as an operator says."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from billing import pricing
from billing.cost.arithmetic import Tokens
from billing.models import Price
from billing.pricing import Rates
from engines.models import Provider


@dataclass(frozen=True)
class Hosted:
    """Rates per million tokens, in `currency`; `name` says whose."""

    name: str
    rates: Rates
    currency: str

    def cost(self, tokens: Tokens) -> Decimal:
        prompt = tokens.uncached + tokens.cached
        return pricing.cost(
            self.rates, input_tokens=prompt, cached_input_tokens=tokens.cached, output_tokens=tokens.output
        )


def given(input_price: Decimal, output_price: Decimal, currency: str, cached: Decimal | None = None) -> Hosted:
    """An operator's own figure. Without a price of cached input it is that of input."""
    return Hosted("as given", Rates(input_price, input_price if cached is None else cached, output_price), currency)


def listed(before: datetime) -> dict[str, Hosted]:
    """Of each public model, the cheapest output among the prices for all tenants at providers, in force at `before`."""
    providers = set(Provider.objects.values_list("name", flat=True))
    rows = Price.objects.filter(target__in=providers, tenant="", effective_from__lte=before).order_by("effective_from")
    latest = {(row.model, row.target, row.currency): row for row in rows}
    found: dict[str, Hosted] = {}
    for row in latest.values():
        hosted = Hosted(row.target, Rates(row.input, row.cached_input, row.output), row.currency)
        best = found.get(row.model)
        if best is None or (hosted.currency == best.currency and hosted.rates.output < best.rates.output):
            found[row.model] = hosted
    return found
