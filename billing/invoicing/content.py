"""All that an invoice states, as one JSON object: copied when it is finalised, hashed, and the source of every export.

Amounts are text with the currency's decimals; `exact` and `unit_price` (per million tokens) are text too, no floats.
Times are ISO 8601 with the offset of the invoice's time zone. The hash is the SHA-256 of the canonical form: keys
sorted, no spaces, UTF-8.
"""

import hashlib
import json
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from billing.amounts import plain, shown
from billing.invoicing.lines import unit_price
from billing.models import BillingAccount, Invoice, InvoiceLine, LegalEntity, Price
from billing.periods import calendar_of
from headrace_core.time_zones import zone_named

Content = dict[str, Any]
VERSION = 1


def content_of(invoice: Invoice, lines: Iterable[InvoiceLine], account: BillingAccount | None) -> Content:
    """What `invoice` says with these lines; of a draft without number, moment of issue, and perhaps seller."""
    zone, lines = zone_named(invoice.time_zone), list(lines)
    spans, list_prices = _spans(invoice, lines), _list_prices(lines)
    issued = invoice.finalised_at
    due = issued + timedelta(days=account.payment_days) if issued and account and not invoice.is_credit_note else None
    return {
        "version": VERSION,
        "id": str(invoice.pk),
        "kind": invoice.kind,
        "number": invoice.number,
        "of_invoice": invoice.of_invoice.number if invoice.of_invoice else None,
        "issued_at": issued.astimezone(zone).isoformat(timespec="seconds") if issued else None,
        "due_on": due.astimezone(zone).date().isoformat() if due else None,
        "period": invoice.label,
        "period_start": _moment(invoice.period_start, zone),
        "period_end": _moment(invoice.period_end, zone),
        "time_zone": invoice.time_zone,
        "currency": invoice.currency,
        "seller": _seller(account.legal_entity if account else None),
        "customer": _customer(invoice, account),
        "lines": [
            line_content(line, invoice.currency)
            | {
                "list_unit_price": None if (listed := _list_price(line, list_prices)) is None else plain(listed),
                "period_start": _moment(spans[line.period][0], zone),
                "period_end": _moment(spans[line.period][1], zone),
            }
            for line in lines
        ],
        "net": shown(invoice.net, invoice.currency),
        "tax_rate": plain(account.tax_rate) if account else "0",
        "tax": shown(invoice.tax, invoice.currency),
        "total": shown(invoice.total, invoice.currency),
    }


def line_content(line: InvoiceLine, currency: str) -> Content:
    return {
        "position": line.position,
        "kind": line.kind,
        "period": f"{line.period:%Y-%m}",
        "description": line.description,
        "project": line.project,
        "model": line.model,
        "token_class": line.token_class,
        "price": line.price,
        "quantity": line.quantity,
        "unit_price": None if line.unit_price is None else plain(line.unit_price),
        "exact": plain(line.exact),
        "amount": shown(line.amount, currency),
    }


def _spans(invoice: Invoice, lines: list[InvoiceLine]) -> dict[date, tuple[datetime, datetime]]:
    """Start and end of each period that a line is of."""
    spans = {invoice.period: (invoice.period_start, invoice.period_end)}
    earlier = {line.period for line in lines} - {invoice.period}
    if earlier:
        calendar = calendar_of(invoice.tenant_id)
        periods = [calendar.period(month) for month in earlier]
        spans |= {period.month: (period.start, period.end) for period in periods}
    return spans


def _list_prices(lines: list[InvoiceLine]) -> dict[tuple[str, str], Decimal]:
    """What everybody pays per million, by price version and token class: the price for all tenants that was in force
    when the line's own began or, where that came later, its first; without one, the line's own."""
    rates: dict[tuple[str, str], Decimal] = {}
    own = {price.version: price for price in Price.objects.filter(version__in={line.price for line in lines})}
    for version, price in own.items():
        listed = price
        if price.tenant:
            for_all = Price.objects.filter(model=price.model, tenant="", currency=price.currency)
            for_all = for_all.filter(target__in=("", price.target)).order_by("-target", "-effective_from")
            then = for_all.filter(effective_from__lte=price.effective_from).first()
            listed = then or for_all.order_by("-target", "effective_from").first() or price
        rates |= {(version, name): unit_price(listed, name) for name in InvoiceLine.TokenClass.values}
    return rates


def _list_price(line: InvoiceLine, listed: dict[tuple[str, str], Decimal]) -> Decimal | None:
    """The line's own where the price is gone: one to come may be taken back after a draft was made of it."""
    return listed.get((line.price, line.token_class), line.unit_price) if line.price else None


def canonical(content: Content) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def hash_of(content: Content) -> str:
    return hashlib.sha256(canonical(content)).hexdigest()


def stated_by(invoice: Invoice) -> Content:
    """The copy of a finalised invoice; what a draft would state as it stands."""
    if invoice.content is not None:
        content: Content = invoice.content
        return content
    account = BillingAccount.objects.select_related("legal_entity").filter(tenant=invoice.tenant_id).first()
    return content_of(invoice, invoice.lines.all(), account)


def _moment(moment: datetime, zone: ZoneInfo) -> str:
    return moment.astimezone(zone).isoformat(timespec="seconds")


def _seller(entity: LegalEntity | None) -> Content | None:
    if entity is None:
        return None
    names = ("slug", "name", "address", "tax_id", "email", "company_data")
    return {name: getattr(entity, name) for name in names}


def _customer(invoice: Invoice, account: BillingAccount | None) -> Content:
    customer = {"tenant": invoice.tenant_id, "name": invoice.tenant.name}
    names = ("address", "tax_id", "email", "reference")
    if account is not None and account.name:
        customer["name"] = account.name
    return customer | {name: getattr(account, name) if account else "" for name in names}
