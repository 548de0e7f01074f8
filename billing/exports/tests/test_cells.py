"""Cells of CSV files: whichever separator a spreadsheet reads, no text becomes a formula, a column or a line."""

import csv
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.exports.cells import csv_rows, marked, text_cell

FORMULA = "=+-@\uff1d\uff0b\uff0d\uff20"
HOSTILE = st.text(st.sampled_from("=+-@;,|\t\r\n\"' \ufeff\u200b\u00a0\u2028\uff1dab1"), max_size=12)
COLUMNS = ("name", "tokens", "labels")


def written(*rows: dict[str, Any]) -> str:
    return b"".join(csv_rows(COLUMNS, rows, numbers=["tokens"], documents=["labels"])).decode()


def read(text: str, separator: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))


def is_formula(cell: str) -> bool:
    return cell.lstrip('\ufeff\u200b\u00a0\u2028 \t"').startswith(tuple(FORMULA))


@given(HOSTILE, HOSTILE, st.dictionaries(HOSTILE, HOSTILE, max_size=2))
def test_no_separator_makes_a_formula_a_column_or_a_line(first: str, second: str, labels: dict[str, str]) -> None:
    rows = [{"name": name, "tokens": 7, "labels": labels} for name in (first, second)]
    text = written(*rows)
    assert len(text.splitlines()) == 3
    for separator, columns in {",": 3, ";": 1, "\t": 1, "|": 1}.items():
        lines = read(text, separator)
        assert [len(line) for line in lines] == [columns] * 3, separator
        assert not any(is_formula(cell) for line in lines for cell in line), separator
    assert [json.loads(line[2]) for line in read(text, ",")[1:]] == [labels, labels]


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("Müller & Söhne", "Müller & Söhne"),
        ("a;b", "a,b"),
        ("a\r\nb", "a b"),
        ("=1+1", "'=1+1"),
        ("\ufeff =1+1", "'\ufeff =1+1"),
        ("x;=1+1", "x,=1+1"),
        ("cmd|' /C calc'!A0", "cmd\u00a6' /C calc'!A0"),
        ("", ""),
    ],
)
def test_text_stays_as_it_is_where_it_can(text: str, cell: str) -> None:
    assert text_cell(text) == cell


def test_excel_is_told_that_a_file_is_utf_8() -> None:
    assert b"".join(marked([b"name\r\n"])) == b"\xef\xbb\xbfname\r\n"
