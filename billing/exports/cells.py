"""Cells of spreadsheet files. Text that a spreadsheet would take for a formula is disarmed; numbers stay numbers."""

import csv
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

# What begins a formula in Excel, LibreOffice or Sheets, also in the wide forms that they take for the same.
_FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
CHUNK_ROWS = 500


def text_cell(value: str) -> str:
    """`value` with an apostrophe before it where it could be a formula: the apostrophe is what makes it text."""
    return f"'{value}" if value.lstrip(" ").startswith(_FORMULA) else value


def csv_rows(columns: Iterable[str], rows: Iterable[Mapping[str, Any]], *, numbers: Iterable[str]) -> Iterator[bytes]:
    """CSV (RFC 4180, UTF-8) a few hundred rows at a time: the header, then `rows`. None is an empty cell.

    `numbers` are the columns that hold digits of ours, written as they are; every other cell is disarmed text.
    """
    names, plain = list(columns), set(numbers)
    buffer = _Buffer()
    writer = csv.writer(buffer)
    writer.writerow(names)
    for count, row in enumerate(rows, start=1):
        writer.writerow([_cell(row[name], is_number=name in plain) for name in names])
        if count % CHUNK_ROWS == 0:
            yield buffer.take()
    yield buffer.take()


def _cell(value: Any, *, is_number: bool) -> str:
    if value is None:
        return ""
    return str(value) if is_number else text_cell(str(value))


class _Buffer:
    """What csv writes to, until it is taken."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    def write(self, text: str) -> int:
        self._parts.append(text)
        return len(text)

    def take(self) -> bytes:
        text = "".join(self._parts)
        self._parts.clear()
        return text.encode()
