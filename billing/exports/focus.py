"""An invoice in FOCUS 1.2, the FinOps Foundation's cost and usage specification (focus.finops.org), as CSV.

One row a line. All 1.2 columns that are mandatory, and the conditional ones of a provider that meters tokens, publishes
prices, negotiates them and has projects. What each amount is:

    ListCost        exact: pricing quantity x the price for everybody
    ContractedCost  exact: pricing quantity x the tenant's price
    BilledCost      the line's amount, rounded: so the sum of BilledCost of an InvoiceId is its payable amount
    EffectiveCost   as billed: nothing is paid ahead and spread

Rounding is thus the difference between ContractedCost and BilledCost of the same row and is in no row of its own. Rows
that are no usage have no unit price; all four costs of them are the line's amount. A price is by the million tokens.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from billing.amounts import plain
from billing.exports.cells import csv_rows
from billing.invoicing.content import Content

COLUMNS = (
    "BilledCost", "BillingAccountId", "BillingAccountName", "BillingAccountType", "BillingCurrency", "BillingPeriodEnd",
    "BillingPeriodStart", "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargeFrequency", "ChargePeriodEnd",
    "ChargePeriodStart", "ConsumedQuantity", "ConsumedUnit", "ContractedCost", "ContractedUnitPrice", "EffectiveCost",
    "InvoiceId", "InvoiceIssuerName", "ListCost", "ListUnitPrice", "PricingCategory", "PricingQuantity", "PricingUnit",
    "ProviderName", "PublisherName", "ResourceId", "ResourceName", "ResourceType", "ServiceCategory", "ServiceName",
    "ServiceSubcategory", "SkuId", "SkuMeter",
    "SkuPriceDetails", "SkuPriceId", "SubAccountId", "SubAccountName", "SubAccountType", "Tags",
)  # fmt: skip
NUMBERS = (
    "BilledCost", "ConsumedQuantity", "ContractedCost", "ContractedUnitPrice", "EffectiveCost", "ListCost",
    "ListUnitPrice", "PricingQuantity",
)  # fmt: skip
PRICING_UNIT, CONSUMED_UNIT = "1000000 Tokens", "Tokens"
_CATEGORIES = {
    "usage": "Usage", "adjustment": "Usage", "discount": "Adjustment", "minimum_fee": "Adjustment", "credit": "Credit",
    "tax": "Tax",
}  # fmt: skip
_METERS = {"uncached": "Uncached input tokens", "cached": "Cached input tokens", "output": "Output tokens"}


def focus_csv(content: Content) -> Iterator[bytes]:
    return csv_rows(COLUMNS, focus_rows(content), numbers=NUMBERS)


def focus_rows(content: Content) -> Iterator[dict[str, Any]]:
    """Rows by column; amounts are decimal text, times ISO 8601 in UTC, what is null in FOCUS is None."""
    seller = content["seller"]["name"] if content["seller"] else "Headrace"
    head: dict[str, Any] = dict.fromkeys(COLUMNS) | {
        "BillingAccountId": content["customer"]["tenant"],
        "BillingAccountName": content["customer"]["name"],
        "BillingAccountType": "Tenant",
        "BillingCurrency": content["currency"],
        "BillingPeriodStart": _utc(content["period_start"]),
        "BillingPeriodEnd": _utc(content["period_end"]),
        "ChargeFrequency": "Usage-Based",
        "InvoiceId": content["number"],
        "InvoiceIssuerName": seller,
        "ProviderName": seller,
        "PublisherName": seller,
        "ServiceCategory": "AI and Machine Learning",
        "ServiceName": "LLM inference",
        "ServiceSubcategory": "Generative AI",
    }
    for line in content["lines"]:
        row = _usage(line) if line["kind"] in ("usage", "adjustment") else _other(line)
        is_correction = content["kind"] == "credit_note" or line["kind"] == "adjustment"
        yield (
            head
            | row
            | {
                "ChargeCategory": _CATEGORIES[line["kind"]],
                "ChargeClass": "Correction" if is_correction else None,
                "ChargeDescription": line["description"],
                "ChargePeriodStart": _utc(line["period_start"]),
                "ChargePeriodEnd": _utc(line["period_end"]),
                "BilledCost": line["amount"],
                "EffectiveCost": line["amount"],
            }
        )


def _usage(line: Content) -> dict[str, Any]:
    quantity = Decimal(line["quantity"]).scaleb(-6)
    sku = f"{line['model']}/{line['token_class']}"
    return {
        "ConsumedQuantity": line["quantity"],
        "ConsumedUnit": CONSUMED_UNIT,
        "PricingCategory": "Standard",
        "PricingQuantity": plain(quantity),
        "PricingUnit": PRICING_UNIT,
        "ContractedUnitPrice": line["unit_price"],
        "ContractedCost": plain(quantity * Decimal(line["unit_price"])),
        "ListUnitPrice": line["list_unit_price"],
        "ListCost": plain(quantity * Decimal(line["list_unit_price"])),
        "ResourceId": line["model"],
        "ResourceName": line["model"],
        "ResourceType": "Model",
        "SkuId": sku,
        "SkuMeter": _METERS[line["token_class"]],
        "SkuPriceDetails": json.dumps(_price_details(line), sort_keys=True),
        "SkuPriceId": f"{line['price']}/{line['token_class']}",
        "SubAccountId": line["project"],
        "SubAccountName": line["project"],
        "SubAccountType": "Project",
        "Tags": json.dumps({"headrace/project": line["project"], "headrace/model": line["model"]}, sort_keys=True),
    }


def _price_details(line: Content) -> dict[str, str]:
    """What this price is of, never its amount. FOCUS names no property of tokens: a provider's own begin with x_."""
    return {"x_Model": line["model"], "x_TokenClass": _METERS[line["token_class"]]}


def _other(line: Content) -> dict[str, Any]:
    frequency = "Recurring" if line["kind"] == "minimum_fee" else "One-Time"
    return {"ContractedCost": line["amount"], "ListCost": line["amount"], "ChargeFrequency": frequency}


def _utc(moment: str) -> str:
    return f"{datetime.fromisoformat(moment).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
