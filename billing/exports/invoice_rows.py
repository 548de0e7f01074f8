"""An invoice as rows of a table: one for each line, each with what is said once for all. CSV and XLSX write these."""

from collections.abc import Iterator
from typing import Any

from billing.invoicing.content import Content

# Names and order are a contract: new ones go to the end.
COLUMNS = (
    "invoice_number", "invoice_id", "kind", "of_invoice", "tenant", "customer", "seller", "currency", "period_start",
    "period_end", "issued_at", "due_on", "line", "line_kind", "line_period", "description", "project", "model",
    "token_class", "price_version", "quantity", "unit_price_per_million", "exact_amount", "amount",
)  # fmt: skip
NUMBERS = ("line", "quantity", "unit_price_per_million", "exact_amount", "amount")


def invoice_rows(content: Content) -> Iterator[dict[str, Any]]:
    """Amounts are decimal text; `amount` of all rows adds up to the invoice's total."""
    head = {
        "invoice_number": content["number"],
        "invoice_id": content["id"],
        "kind": content["kind"],
        "of_invoice": content["of_invoice"],
        "tenant": content["customer"]["tenant"],
        "customer": content["customer"]["name"],
        "seller": content["seller"]["name"] if content["seller"] else None,
        **{name: content[name] for name in ("currency", "period_start", "period_end", "issued_at", "due_on")},
    }
    for line in content["lines"]:
        yield head | {
            "line": line["position"],
            "line_kind": line["kind"],
            "line_period": line["period"],
            "price_version": line["price"],
            "unit_price_per_million": line["unit_price"],
            "exact_amount": line["exact"],
            **{name: line[name] for name in ("description", "project", "model", "token_class", "quantity", "amount")},
        }
