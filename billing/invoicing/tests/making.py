"""What the tests of invoices are made of: a seller, tenants with terms, prices, and usage written as the drain does."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import connection

from billing import pricing
from billing.events import read_event
from billing.invoicing.closing import close_all
from billing.invoicing.finalising import finalise_invoice
from billing.ledger import write_entries
from billing.models import BillingAccount, Invoice, LegalEntity, Price
from billing.partitions import month_of
from billing.pricing import Rates
from billing.tests.stream import usage_event
from tenants.models import Tenant

NOW = datetime(2027, 6, 1, tzinfo=UTC)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def make_seller(slug: str = "north", **fields: Any) -> LegalEntity:
    values = {
        "name": "Northern Compute GmbH",
        "address": "Speicherstraße 7\n20457 Hamburg\nGermany",
        "tax_id": "DE 123 456 789",
        "email": "billing@north.test",
        "company_data": "Hamburg Hamburg HRB 123456\nDirectors: Ada Brandt, Emil Krüger\nIBAN DE02 1203 0000 2020 51",
        "invoice_prefix": f"{slug.upper()}-",
    }
    return LegalEntity.objects.create(slug=slug, **values | fields)


def make_customer(slug: str = "acme", seller: LegalEntity | None = None, **fields: Any) -> Tenant:
    """A tenant since 2026; `fields` are its own, or its billing account's."""
    own = {name: fields.pop(name) for name in ("currency", "time_zone", "created_at", "name") if name in fields}
    defaults = {"name": slug.title(), "currency": "EUR", "created_at": datetime(2026, 1, 1, tzinfo=UTC)}
    tenant = Tenant.objects.create(slug=slug, **defaults | own)
    values = {"legal_entity": seller or LegalEntity.objects.first(), "since": LONG_AGO}
    BillingAccount.objects.create(tenant=tenant, **values | fields)
    return tenant


def make_price(model: str = "demo", input: str = "0.5", cached: str = "0.1", output: str = "2", **fields: Any) -> Price:
    values = {"currency": "EUR", "effective_from": LONG_AGO}
    return Price.objects.create(
        model=model, input=Decimal(input), cached_input=Decimal(cached), output=Decimal(output), **values | fields
    )


def use(
    at: datetime | str, price: Price | None = None, *, tokens: tuple[int, int, int] = (1000, 400, 50), **fields: Any
) -> str:
    """One record of acme, admitted at `at` (UTC), of (input, of them cached, output) tokens; its request id."""
    event = event_of(utc(at) if isinstance(at, str) else at, price, tokens=tokens, **fields)
    write(event)
    return str(event["request_id"])


def event_of(
    at: datetime, price: Price | None = None, *, tokens: tuple[int, int, int] = (1000, 400, 50), **fields: Any
) -> dict[str, Any]:
    counts = dict(zip(("input_tokens", "cached_input_tokens", "output_tokens"), tokens, strict=True))
    money: dict[str, Any] = {"cost": None, "cost_nano": None, "price": None}
    if price is not None:
        rates = Rates(price.input, price.cached_input, price.output)
        cost = pricing.cost(rates, **counts)
        money = {
            "cost": pricing.text(cost),
            "cost_nano": pricing.nano(cost),
            "price": price.version,
            "rates": [f"{rate:f}" for rate in (price.input, price.cached_input, price.output)],
        }
    model = price.model if price else "demo"
    return usage_event(at, reasoning_tokens=0, **({"model": model} | counts | money | fields))


def write(*events: dict[str, Any]) -> int:
    entries = [read_event("0-0", json.dumps(event).encode()) for event in events]
    with connection.cursor() as cursor:
        for month in {month_of(entry.admitted_at) for entry in entries}:
            cursor.execute("SELECT headrace_usage_partition(%s)", [month])
    return write_entries(entries)


def close(now: datetime = NOW, **options: Any) -> list[Invoice]:
    closed = close_all(now=now, **options)
    assert closed.failed == []
    return closed.drafts


def finalise(invoice: Invoice, now: datetime = NOW, **options: Any) -> Invoice:
    return finalise_invoice(invoice.pk, now=now, grace=timedelta(), **options)


def stated(invoice: Invoice) -> list[tuple[Any, ...]]:
    """What the lines say, in a word each."""
    return [
        (
            line.kind,
            f"{line.period:%Y-%m}",
            line.project,
            line.model,
            line.token_class,
            line.price,
            line.quantity,
            line.amount,
        )
        for line in invoice.lines.order_by("position")
    ]


def at_once(count: int, work: Any) -> list[Any]:
    """`work(number)` in threads, each with a database connection of its own."""

    def run(number: int) -> Any:
        try:
            return work(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def months(first: date, count: int) -> Iterator[date]:
    for index in range(count):
        number = first.year * 12 + first.month - 1 + index
        yield date(number // 12, number % 12 + 1, 1)
