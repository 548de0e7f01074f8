"""Invoices: lines from their tokens, totals from lines, months from their hours, copies from their hashes."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import redis
from django.db.models import Count, Max, Min

from billing.amounts import ZERO, rounded
from billing.invoicing.content import hash_of, line_content
from billing.invoicing.lines import Key, Kind, TokenClass, cost_of, stated, unit_price, use_of
from billing.ledger_check.check import Check, MonthlyCheck, Outcome
from billing.models import Invoice, InvoiceLine, LateUsage, Price, UsageRecord
from billing.periods import calendar_of
from billing.usage import SHADOW


class Invoices(MonthlyCheck):
    name = "invoices"
    text = "each line = its tokens at its price, rounded once; each invoice = its lines = its copy = its hash"
    needs_records = False

    def of_month(self, span: Mapping[str, Any]) -> Outcome:
        outcome = Outcome()
        invoices = Invoice.objects.filter(period=span["month"]).order_by("period_start", "tenant")
        lines = InvoiceLine.objects.filter(invoice__period=span["month"]).exclude(price="")
        prices = Price.objects.filter(version__in=lines.order_by().values("price")).in_bulk(field_name="version")
        for invoice in invoices.prefetch_related("lines").iterator(500):
            outcome.compared += 1
            for said in _of_invoice(invoice, prices):
                outcome.add(f"{invoice}: {said}")
        return outcome


class InvoicedUsage(MonthlyCheck):
    name = "invoiced_usage"
    text = "what invoices state of a month = its hours, but for late usage that the next one will state"

    needs_records = False

    def of_month(self, span: Mapping[str, Any]) -> Outcome:
        outcome, month = Outcome(), span["month"]
        issued = Invoice.objects.stating_usage().filter(period=month).values_list("tenant_id", "currency").distinct()
        for tenant, currency in issued.order_by("tenant_id", "currency"):
            used = use_of(tenant, calendar_of(tenant).period(month), currency).tokens
            said, late = stated(tenant, month, currency), _unstated(tenant, month, currency)
            for key in sorted({*used, *said, *late}):
                outcome.compared += 1
                if said.get(key, 0) + late[key] != used.get(key, 0):
                    where = f"{tenant} {month:%Y-%m} {' '.join(key)} {currency}"
                    sums = f"invoices state {said.get(key, 0)} and {late[key]} came late, hours have {used.get(key, 0)}"
                    outcome.add(f"{where}: {sums}")
        return outcome


class Numbers(Check):
    name = "numbers"
    text = "the numbers of each legal entity have no gap"

    def run(self, client: "redis.Redis", months: Sequence[date] | None = None) -> Outcome:
        outcome = Outcome()
        series = Invoice.objects.exclude(sequence=None).order_by().values("legal_entity", "legal_entity__next_number")
        for row in series.annotate(first=Min("sequence"), last=Max("sequence"), count=Count("id")):
            outcome.compared += row["count"]
            if row["last"] - row["first"] + 1 != row["count"] or row["legal_entity__next_number"] != row["last"] + 1:
                said = f"{row['count']} invoices are numbered {row['first']} to {row['last']}"
                outcome.add(f"{row['legal_entity']}: {said}, the next is {row['legal_entity__next_number']}")
        return outcome


def _of_invoice(invoice: Invoice, prices: dict[str, Price]) -> Iterator[str]:
    lines = sorted(invoice.lines.all(), key=lambda line: line.position)
    for line in lines:
        yield from (f"line {line.position}: {said}" for said in _of_line(line, invoice.currency, prices))
    tax = sum((line.amount for line in lines if line.kind == Kind.TAX), ZERO)
    net = sum((line.amount for line in lines if line.kind != Kind.TAX), ZERO)
    if (invoice.net, invoice.tax, invoice.total) != (net, tax, net + tax):
        yield f"it states {invoice.net} + {invoice.tax} = {invoice.total}, its lines are {net} + {tax}"
    if invoice.content is None:
        return
    if hash_of(invoice.content) != invoice.content_hash:
        yield "its content is not what was hashed"
    copied = {line["position"]: line for line in invoice.content["lines"]}
    for line in lines:
        own = line_content(line, invoice.currency)
        copy = copied.pop(line.position, {})
        if any(copy.get(name) != value for name, value in own.items()):
            yield f"line {line.position} is not as it was copied"
    if copied:
        yield f"lines {sorted(copied)} of its copy are gone"
    if Decimal(invoice.content["total"]) != invoice.total:
        yield f"its copy states a total of {invoice.content['total']}, not {invoice.total}"


def _of_line(line: InvoiceLine, currency: str, prices: dict[str, Price]) -> Iterator[str]:
    if rounded(line.amount, currency) != line.amount:
        yield f"{line.amount} {currency} is no whole number of minor units"
    if line.kind not in {Kind.USAGE, Kind.ADJUSTMENT} or line.quantity is None or line.unit_price is None:
        return
    if line.token_class not in TokenClass.values:
        yield f"{line.token_class or 'none'} is no class of tokens"
        return
    price = prices.get(line.price)
    if price is not None and (price.model, price.currency) != (line.model, currency):
        yield f"{line.price} is the price of {price.model} in {price.currency}, not of {line.model} in {currency}"
    if price is None or unit_price(price, line.token_class) != line.unit_price:
        yield f"{line.unit_price} is not the price of {line.price}"
    if line.exact != cost_of(line.quantity, line.unit_price) or line.amount != rounded(line.exact, currency):
        yield f"{line.quantity} tokens at {line.unit_price} a million are not {line.exact}, {line.amount} {currency}"


def _unstated(tenant: str, month: date, currency: str) -> "Counter[Key]":
    """Tokens of the month that came after its invoice and are on no other yet."""
    waiting = LateUsage.objects.filter(tenant=tenant, invoice=None).values_list("request_id", "part", "admitted_at")
    calendar = calendar_of(tenant)
    wanted: dict[object, list[int]] = defaultdict(list)
    for request_id, part, admitted_at in waiting:
        if calendar.at(admitted_at).month == month:
            wanted[request_id].append(part)
    found: Counter[Key] = Counter()
    rows = UsageRecord.rows.filter(request_id__in=list(wanted), currency=currency).exclude(kind=SHADOW)
    for row in rows.exclude(price=None):
        if row.part in wanted[row.request_id]:
            tokens = (row.input_tokens - row.cached_input_tokens, row.cached_input_tokens, row.output_tokens)
            for name, count in zip((TokenClass.UNCACHED, TokenClass.CACHED, TokenClass.OUTPUT), tokens, strict=True):
                found[Key(row.project, row.model, name, row.price or "")] += count
    return found
