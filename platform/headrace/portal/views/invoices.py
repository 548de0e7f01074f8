"""Invoices: the list, one with its lines, the records behind a line, and each as a file."""

from decimal import Decimal
from typing import Any
from uuid import UUID

from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone

from billing.exports.cells import marked
from billing.exports.formats import FORMATS, file_name
from billing.exports.record_rows import records_csv
from billing.invoicing.records import first_records, records_behind
from billing.invoicing.remaining import with_remaining
from billing.models import Credit, Invoice, InvoiceLine
from headrace.portal import documents
from headrace.portal.access import May
from headrace.portal.downloads import Kept, streamed
from headrace.portal.invoice_rows import line_rows
from headrace.portal.request import PortalRequest
from headrace_core.time_zones import zone_named
from tenants.models import ApiKey, Tenant

PAGE = 50
SHOWN_RECORDS = 50
MOST_RECORDS = 50_000  # of one download
TITLES = {"pdf": "PDF", "csv": "CSV", "xlsx": "Excel", "json": "JSON", "focus": "FOCUS 1.2"}


def listing(request: PortalRequest) -> HttpResponse:
    """The month that runs, then all documents, newest first, 50 at a time."""
    tenant, now = request.tenant, timezone.now()
    number = _number(request.GET.get("page", ""))
    rows = list(documents.listed(tenant)[number * PAGE : (number + 1) * PAGE + 1])
    context = {
        "invoices": rows[:PAGE],
        "running": documents.running(tenant, now) if not number else None,
        "credits": _credits(tenant),
        "earlier": number - 1 if number else None,
        "later": number + 1 if len(rows) > PAGE else None,
    }
    return render(request, "portal/invoices.html", context)


def one(request: PortalRequest, invoice: UUID) -> HttpResponse:
    return _shown(request, documents.document(_invoice(request, invoice)))


def running(request: PortalRequest) -> HttpResponse:
    """The month that runs, so far."""
    return _shown(request, documents.running(request.tenant, timezone.now()))


def download(request: PortalRequest, invoice: UUID, form: str) -> HttpResponseBase:
    return _download(request, documents.document(_invoice(request, invoice)), form)


def download_running(request: PortalRequest, form: str) -> HttpResponseBase:
    return _download(request, documents.running(request.tenant, timezone.now()), form)


def line(request: PortalRequest, invoice: UUID, position: int) -> HttpResponse:
    """The first records behind a line, all as CSV, and when those were dropped that are gone."""
    found = _line(request, invoice, position)
    behind = records_behind(found)
    rows = first_records(found, SHOWN_RECORDS)
    keys = ApiKey.objects.of(request.tenant).filter(pk__in={row.key for row in rows})
    context = {
        "line": found,
        "invoice": found.invoice,
        "rows": rows,
        "keys": dict(keys.values_list("pk", "name")) if request.may(May.SEE_KEYS) else {},
        "shown": SHOWN_RECORDS,
        "most": MOST_RECORDS,
        "dropped": behind.dropped,
    }
    return render(request, "portal/invoice_line.html", context)


def line_records(request: PortalRequest, invoice: UUID, position: int) -> HttpResponseBase:
    found = _line(request, invoice, position)
    name = f"{file_name(found.invoice, 'csv').removesuffix('.csv')}-line-{position}.csv"
    pieces = Kept(marked(records_csv([found], most=MOST_RECORDS)))
    return streamed(request, pieces, content_type=FORMATS["csv"].content_type, name=name)


def _shown(request: PortalRequest, document: documents.Document) -> HttpResponse:
    invoice, content = document.invoice, document.content
    context: dict[str, Any] = {
        "document": document,
        "invoice": invoice,
        "content": content,
        "zone": zone_named(invoice.time_zone),
        "lines": content["lines"],
        "rows": line_rows(document),
        "waits_for": [] if document.is_running else list(documents.waits_for(invoice, timezone.now())),
        "formats": TITLES,
    }
    if not document.is_running:
        context["credit_notes"] = list(invoice.credit_notes.defer("content").order_by("sequence"))
        context["credited"] = invoice.of_invoice
    return render(request, "portal/invoice.html", context)


def _download(request: PortalRequest, document: documents.Document, form: str) -> HttpResponseBase:
    if form not in FORMATS:
        raise Http404
    written = FORMATS[form]
    name = file_name(document.invoice, form)
    pieces = written.write(document.content, document.invoice.status)
    if form == "csv":
        pieces = marked(pieces)
    return streamed(request, pieces, content_type=written.content_type, name=name)


def _credits(tenant: Tenant) -> list[tuple[Credit, Decimal]]:
    """What credits have left for coming invoices."""
    return [(credit, left) for credit, left in with_remaining(Credit.objects.filter(tenant=tenant)) if left > 0]


def _invoice(request: PortalRequest, pk: UUID) -> Invoice:
    found = Invoice.objects.of(request.tenant).filter(pk=pk).select_related("tenant").first()
    if found is None:
        raise Http404
    return found


def _line(request: PortalRequest, invoice: UUID, position: int) -> InvoiceLine:
    owner = _invoice(request, invoice)
    found = owner.lines.filter(position=position).first()
    if found is None or not found.has_records:
        raise Http404
    found.invoice = owner
    return found


def _number(text: str) -> int:
    return min(int(text), 10_000) if text.isascii() and text.isdecimal() else 0
