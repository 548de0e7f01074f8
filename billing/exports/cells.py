"""Cells of spreadsheet files: no text of anybody's is taken for a formula, for another column or for another line.

A spreadsheet does not ask which separator a file was written with: in many countries it reads semicolons, and tabs or
bars where somebody chose them. Quoting protects from the file's own separator alone, so text holds none of the others.
Numbers stay numbers, and no row is a sum of the others.
"""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

# Excel takes a file without it for the ANSI of its country, and spoils every letter beyond ASCII.
BYTE_ORDER_MARK = "\ufeff"
CHUNK_ROWS = 500

# What begins a formula in Excel, LibreOffice or Sheets, also in the wide forms that they take for the same.
_FORMULA = frozenset("=+-@\uff1d\uff0b\uff0d\uff20")
_LINE_END = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
_SEPARATORS = str.maketrans({";": ",", "|": "\u00a6"})
_ESCAPED = {";": r"\u003b", "|": r"\u007c"}


def text_cell(value: str) -> str:
    """`value` on one line and in one column: ends of lines and tabs are a space, a semicolon is a comma, a bar a broken
    bar. An apostrophe stands before what could be a formula: it is what makes it text."""
    text = _LINE_END.sub(" ", value).translate(_SEPARATORS)
    return f"'{text}" if _first_seen(text) in _FORMULA else text


def json_cell(value: Any) -> str:
    """JSON that says exactly `value` and holds no separator but the comma."""
    text = json.dumps(value, ensure_ascii=False)
    for character, escaped in _ESCAPED.items():  # outside its strings JSON has neither
        text = text.replace(character, escaped)
    return _LINE_END.sub(lambda found: "".join(f"\\u{ord(each):04x}" for each in found[0]), text)


def csv_rows(
    columns: Iterable[str],
    rows: Iterable[Mapping[str, Any]],
    *,
    numbers: Iterable[str],
    documents: Iterable[str] = (),
) -> Iterator[bytes]:
    """CSV (RFC 4180, UTF-8) a few hundred rows at a time: the header, then `rows`. None is an empty cell.

    numbers: columns that hold digits of ours, written as they are. documents: columns of values to write as JSON. Every
    other cell is `text_cell`.
    """
    names, plain, structured = list(columns), set(numbers), set(documents)
    buffer = _Buffer()
    writer = csv.writer(buffer)
    writer.writerow([text_cell(name) for name in names])
    for count, row in enumerate(rows, start=1):
        writer.writerow([_cell(row[name], name in plain, name in structured) for name in names])
        if count % CHUNK_ROWS == 0:
            yield buffer.take()
    yield buffer.take()


def marked(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """`pieces` of CSV as a file that a person opens in a spreadsheet; without the mark it is one for programs."""
    yield BYTE_ORDER_MARK.encode()
    yield from pieces


def _cell(value: Any, is_number: bool, is_document: bool) -> str:
    if value is None:
        return ""
    if is_document:
        return json_cell(value)
    return str(value) if is_number else text_cell(str(value))


def _first_seen(text: str) -> str:
    """The first character that is neither a space of any kind, nor invisible, nor a quote that a reader takes away."""
    return next((each for each in text if not each.isspace() and each.isprintable() and each != '"'), "")


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
