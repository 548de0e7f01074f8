"""The records behind an invoice or a line as CSV, a row at a time: an invoice may be of millions."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from billing.exports.cells import csv_rows
from billing.exports.usage import FIELDS, plain_values
from billing.invoicing.records import records_behind
from billing.models import InvoiceLine

COLUMNS = ("invoice_number", "line", "part", *FIELDS)
NUMBERS = (
    "line", "part", "input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens", "cost", "queue_ms",
    "ttft_ms", "tpot_ms", "fallback", "uncached_input_tokens",
)  # fmt: skip


def records_csv(lines: Iterable[InvoiceLine], *, most: int | None = None) -> Iterator[bytes]:
    """One row for each record or correction of each line that has any. A request whose tokens are of several classes is
    behind several lines. With `most`, so many rows at most."""
    return csv_rows(COLUMNS, islice(_rows(lines), most), numbers=NUMBERS, documents=("labels",))


def _rows(lines: Iterable[InvoiceLine]) -> Iterator[dict[str, Any]]:
    for line in lines:
        if not line.has_records:
            continue
        head = {"invoice_number": line.invoice.number, "line": line.position}
        for record in records_behind(line).rows():
            yield head | plain_values(record, ("part", *FIELDS))
