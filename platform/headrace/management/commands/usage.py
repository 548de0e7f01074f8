"""`manage.py usage --tenant T`: the records of a tenant's requests."""

import json
from argparse import ArgumentTypeError
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing.exports import FIELDS, dropped_within, usage_rows
from billing.exports.cells import csv_rows
from billing.exports.record_rows import NUMBERS as _DIGITS
from billing.periods import calendar_of
from headrace_core.time_zones import zone_named
from tenants.models import Tenant

DEFAULT_LIMIT = 1000
Rows = Iterable[dict[str, Any]]
_TABLE = ("admitted_at", "request_id", "project", "model", "target", "status", "input_tokens", "cached_input_tokens",
          "output_tokens", "ttft_ms", "cost")  # fmt: skip
_HEADINGS = {"input_tokens": "input", "cached_input_tokens": "cached", "output_tokens": "output", "ttft_ms": "ttft ms"}
_NUMBERS = {"input_tokens", "cached_input_tokens", "output_tokens", "ttft_ms", "cost"}


class Command(BaseCommand):
    help = (
        "Prints usage records, newest first: request by request, with what was corrected later. --from and --to take a "
        "date (of the tenant's time zone) or a time; the first belongs to the span, the last does not."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", required=True)
        parser.add_argument("--from", dest="start", type=_moment, metavar="TIME")
        parser.add_argument("--to", dest="end", type=_moment, metavar="TIME")
        parser.add_argument("--limit", type=_count, default=DEFAULT_LIMIT, help=f"at most so many ({DEFAULT_LIMIT})")
        parser.add_argument("--format", choices=["json", "csv", "table"], default="table")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = Tenant.objects.filter(slug=options["tenant"]).first()
        if tenant is None:
            raise CommandError(f"there is no tenant {options['tenant']}")
        start, end = (_in_zone(options[name], tenant) for name in ("start", "end"))
        if gone := dropped_within(start, end):
            self.stderr.write(f"The records of {', '.join(gone)} were dropped; their hours are kept.")
        rows = usage_rows(tenant, start=start, end=end, most=options["limit"])
        write = {"json": _json, "csv": _csv, "table": _table}[options["format"]]
        for text in write(rows):
            self.stdout.write(text, ending="" if text.endswith("\n") else "\n")


def _json(rows: Rows) -> Iterator[str]:
    """One array, a record a line, written as the records are read."""
    before = "["
    for row in rows:
        yield before + json.dumps(row, ensure_ascii=False)
        before = ","
    yield "]" if before == "," else "[]"


def _csv(rows: Rows) -> Iterator[str]:
    columns = [*FIELDS, "corrections"]
    pieces = csv_rows(columns, rows, numbers=_DIGITS, documents=("labels", "corrections"))
    for piece in pieces:
        yield piece.decode()


def _table(rows: Rows) -> Iterator[str]:
    cells = [[_HEADINGS.get(name, name) for name in _TABLE]]
    for row in rows:
        cells.append([_cell(name, row) for name in _TABLE])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        aligned = (
            text.rjust(width) if name in _NUMBERS else text.ljust(width)
            for name, text, width in zip(_TABLE, line, widths, strict=True)
        )
        yield "  ".join(aligned).rstrip()


def _cell(name: str, row: dict[str, Any]) -> str:
    value = row[name]
    if name == "cost":
        return "unpriced" if value is None else f"{value} {row['currency']}"
    if name == "ttft_ms" and value is not None:
        return f"{value:.0f}"
    return "" if value is None else str(value)


def _moment(text: str) -> datetime | date:
    try:
        return date.fromisoformat(text) if len(text) == 10 else datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"{text} is neither a date (2026-03-31) nor a time (2026-03-31T12:00:00Z)") from None


def _in_zone(moment: datetime | date | None, tenant: Tenant) -> datetime | None:
    """The instant; what has no offset is a day, or a time, of the zone that the tenant had then."""
    if moment is None:
        return None
    calendar = calendar_of(tenant.pk)
    if not isinstance(moment, datetime):
        return calendar.day_start(moment)
    zone = calendar.time_zone_at(calendar.day_start(moment.date()))
    return moment if moment.tzinfo else moment.replace(tzinfo=zone_named(zone))


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 2**31:
        raise ArgumentTypeError(f"{text} is not a positive whole number")
    return int(text)
