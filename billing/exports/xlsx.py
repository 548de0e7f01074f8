"""An invoice as an Excel workbook: a sheet of its facts, one of its lines. Written row by row to a temporary file."""

import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, cast

import xlsxwriter

from billing.exports.invoice_rows import COLUMNS, NUMBERS, invoice_rows
from billing.invoicing.content import Content

CHUNK = 64 * 1024
_DIGITS = 15  # what a cell's double holds exactly; a longer number is written as text, never cut
_WIDTHS = {"description": 48, "invoice_id": 38, "period_start": 27, "period_end": 27, "issued_at": 27}


def xlsx(content: Content) -> Iterator[bytes]:
    with tempfile.TemporaryFile() as file:
        # Nothing is guessed: no text becomes a formula, a link or a number.
        guesses = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
        book = xlsxwriter.Workbook(file, {"constant_memory": True, **guesses})
        book.set_properties({"title": content["number"] or "Draft", "created": _created(content)})
        bold = book.add_format({"bold": True})
        money = book.add_format({"num_format": _money(content["total"])})
        _facts(book.add_worksheet("Invoice"), content, bold, money)
        _lines(book.add_worksheet("Lines"), content, bold, money)
        book.close()
        file.seek(0)
        while chunk := file.read(CHUNK):
            yield chunk


def _facts(sheet: Any, content: Content, bold: Any, money: Any) -> None:
    sheet.set_column(0, 1, 32)
    facts = (
        "number",
        "kind",
        "of_invoice",
        "issued_at",
        "due_on",
        "period_start",
        "period_end",
        "time_zone",
        "currency",
    )
    rows: list[tuple[str, Any]] = [(name, content[name]) for name in facts]
    for party in ("seller", "customer"):
        rows += [(f"{party}_{name}", value) for name, value in sorted((content[party] or {}).items())]
    for place, (name, value) in enumerate(rows):
        sheet.write_string(place, 0, name, bold)
        sheet.write_string(place, 1, value or "")
    for place, name in enumerate(("net", "tax_rate", "tax", "total"), start=len(rows)):
        sheet.write_string(place, 0, name, bold)
        _number(sheet, place, 1, content[name], None if name == "tax_rate" else money)


def _lines(sheet: Any, content: Content, bold: Any, money: Any) -> None:
    sheet.freeze_panes(1, 0)
    for column, name in enumerate(COLUMNS):
        sheet.set_column(column, column, _WIDTHS.get(name, 16))
        sheet.write_string(0, column, name, bold)
    for place, row in enumerate(invoice_rows(content), start=1):
        for column, name in enumerate(COLUMNS):
            value = row[name]
            if value is None:
                continue
            if name in NUMBERS:
                _number(sheet, place, column, value, money if name == "amount" else None)
            else:
                sheet.write_string(place, column, value)


def _number(sheet: Any, row: int, column: int, value: str | int, style: Any) -> None:
    digits = sum(character.isdigit() for character in str(value).lstrip("-0."))
    if digits > _DIGITS:
        sheet.write_string(row, column, str(value))
    else:
        sheet.write_number(row, column, float(value), style)


def _money(amount: str) -> str:
    decimals = len(amount.partition(".")[2])
    return "#,##0." + "0" * decimals if decimals else "#,##0"


def _created(content: Content) -> datetime:
    """The moment of issue, so that a finalised invoice is the same file each time."""
    issued = cast("str | None", content["issued_at"])
    return datetime.fromisoformat(issued).astimezone(UTC).replace(tzinfo=None) if issued else datetime(2000, 1, 1)
