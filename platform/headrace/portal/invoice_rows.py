"""The rows of an invoice's lines, written here: a template takes a fifth of a ms for each, and some have thousands."""

from collections.abc import Iterator

from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from billing.amounts import UNKNOWN, priced, summed
from billing.models import InvoiceLine
from headrace.portal.documents import Document
from headrace.quantities import count

_ROW = (
    '<tr><th scope="row">{}{}</th><td class="wide">{}</td><td class="n wide">{}</td><td class="n wide">{}</td>'
    '<td class="n" title="Exactly {} {}">{}</td><td class="nowrap no-print">{}</td></tr>'
)
_PRICE = (
    '<span class="below wide">price {}</span>'
    '<span class="below narrow">{}, {} tokens at {} a million</span>'
)  # fmt: skip
_RECORDS = '<a href="{}{}/">Records<span class="seen-by-readers"> behind {}, {}</span></a>'
_FROM_USE = (InvoiceLine.Kind.USAGE, InvoiceLine.Kind.ADJUSTMENT)


def line_rows(document: Document) -> SafeString:
    """Of every line but the taxes, under the headings of invoice.html, in this order."""
    return format_html_join("\n", _ROW, _cells(document))


def _cells(document: Document) -> Iterator[tuple[str, ...]]:
    invoice, currency = document.invoice, document.invoice.currency
    lines = reverse("portal:invoices-line", args=[invoice.tenant_id, invoice.pk, 0]).removesuffix("0/")
    for line in document.content["lines"]:
        if line["kind"] == InvoiceLine.Kind.TAX:
            continue
        quantity, price = count(line["quantity"]), priced(line["unit_price"], currency)
        has_records = line["kind"] in _FROM_USE and not document.is_running
        yield (
            line["description"],
            format_html(_PRICE, line["price"], line["project"], quantity, price) if line["price"] else "",
            line["project"] or UNKNOWN,
            quantity,
            price,
            line["exact"],
            currency,
            summed(line["amount"], currency),
            format_html(_RECORDS, lines, line["position"], line["description"], line["project"]) if has_records else "",
        )
