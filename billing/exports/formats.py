"""The forms in which an invoice leaves, by name. Adding one adds one here."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from billing.exports.cells import csv_rows
from billing.exports.focus import focus_csv
from billing.exports.invoice_rows import COLUMNS, NUMBERS, invoice_rows
from billing.exports.pdf import pdf
from billing.exports.xlsx import xlsx
from billing.invoicing.content import Content, stated_by
from billing.models import Invoice


@dataclass(frozen=True)
class Format:
    """How a file is named and served, and what writes it: pieces of bytes from an invoice's content and status."""

    extension: str
    content_type: str
    write: Callable[[Content, str], Iterator[bytes]]


def _json(content: Content, status: str) -> Iterator[bytes]:
    yield json.dumps(content | {"status": status}, indent=2, sort_keys=True, ensure_ascii=False).encode() + b"\n"


_XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
FORMATS = {
    "pdf": Format("pdf", "application/pdf", lambda content, status: pdf(content, status=status)),
    "csv": Format(
        "csv", "text/csv; charset=utf-8", lambda content, _: csv_rows(COLUMNS, invoice_rows(content), numbers=NUMBERS)
    ),
    "xlsx": Format("xlsx", _XLSX, lambda content, _: xlsx(content)),
    "json": Format("json", "application/json", _json),
    "focus": Format("focus.csv", "text/csv; charset=utf-8", lambda content, _: focus_csv(content)),
}


def export(invoice: Invoice, name: str) -> Iterator[bytes]:
    """The invoice in the form called `name`, piece by piece; a draft as it stands."""
    return FORMATS[name].write(stated_by(invoice), invoice.status)


def file_name(invoice: Invoice, name: str) -> str:
    """Of its number, or of tenant and period for a draft: nothing that a path or a header could be broken with."""
    stem = invoice.number or f"draft-{invoice.tenant_id}-{invoice.label}"
    return f"{stem.replace('/', '-')}.{FORMATS[name].extension}"
