"""`manage.py invoices`: closes periods, finalises, voids, credits, exports, and opens the records behind a line."""

import json
import sys
from argparse import ArgumentTypeError
from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from billing.amounts import shown
from billing.exports.formats import FORMATS, export
from billing.exports.record_rows import records_csv
from billing.invoicing.blockers import DEAD_LETTERS
from billing.invoicing.closing import close_all
from billing.invoicing.crediting import credit_invoice
from billing.invoicing.errors import InvoiceError
from billing.invoicing.finalising import boxes_in, finalise_all, finalise_invoice
from billing.invoicing.records import records_behind
from billing.invoicing.voiding import void_invoice
from billing.models import Invoice
from headrace.command_line import operators_name
from headrace_core import audit
from tenants.models import Tenant

COLUMNS = ("id", "number", "kind", "status", "tenant", "period", "currency", "net", "tax", "total")


class Command(BaseCommand):
    help = "Invoices. INVOICE is a number, or an id or the beginning of one, as `list` prints them."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        listing = verbs.add_parser("list", help="lists drafts, invoices and credit notes, newest period first")
        listing.add_argument("--tenant")
        listing.add_argument("--status", choices=Invoice.Status.values)
        listing.add_argument("--json", action="store_true")
        closing = verbs.add_parser("close", help="computes the drafts of all periods that are over; changes no invoice")
        closing.add_argument("--tenant", action="append", help="of this tenant; may repeat")
        finalising = verbs.add_parser("finalise", help="makes drafts invoices: number, copy, hash")
        finalising.add_argument("invoice", nargs="*", type=_invoice, help="none: all whose grace time is over")
        finalising.add_argument(
            "--accept", action="append", choices=[DEAD_LETTERS], default=[], help="do not wait for these"
        )
        voiding = verbs.add_parser("void", help="voids a finalised one; its usage can be invoiced again")
        voiding.add_argument("invoice", type=_invoice)
        voiding.add_argument("--reason", required=True)
        crediting = verbs.add_parser("credit", help="issues a credit note for an invoice")
        crediting.add_argument("invoice", type=_invoice)
        crediting.add_argument("--reason", required=True)
        crediting.add_argument("--net", type=_amount, help="before tax; left out: all that is left of it")
        exporting = verbs.add_parser("export", help="writes one in a form")
        exporting.add_argument("invoice", type=_invoice)
        exporting.add_argument("--format", choices=list(FORMATS), default="pdf")
        exporting.add_argument("--output", default="-", help="a file; - or none: standard output")
        opening = verbs.add_parser("records", help="writes the records behind a line, or all lines, as CSV")
        opening.add_argument("invoice", type=_invoice)
        opening.add_argument("line", nargs="?", type=int, help="its position; none: all lines")
        opening.add_argument("--output", default="-", help="a file; - or none: standard output")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with audit.naming(who=operators_name(), origin="manage.py invoices"):
                getattr(self, f"_{options['verb']}")(options)
        except InvoiceError as error:
            raise CommandError(str(error)) from error

    def _list(self, options: dict[str, Any]) -> None:
        invoices = Invoice.objects.defer("content")
        if options["tenant"]:
            invoices = invoices.of(options["tenant"])
        if options["status"]:
            invoices = invoices.filter(status=options["status"])
        rows = [_row(invoice) for invoice in invoices]
        if options["json"]:
            self.stdout.write(json.dumps(rows))
            return
        self._table(rows)

    def _table(self, rows: list[dict[str, str | None]]) -> None:
        cells = [list(COLUMNS), *([row[name] or "-" for name in COLUMNS] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for line in cells:
            self.stdout.write("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())

    def _close(self, options: dict[str, Any]) -> None:
        named = options["tenant"]
        if named and (
            unknown := set(named) - set(Tenant.objects.filter(slug__in=named).values_list("slug", flat=True))
        ):
            raise CommandError(f"there is no tenant {', '.join(sorted(unknown))}")
        closed = close_all(tenants=named)
        self._table([_row(invoice) for invoice in closed.drafts])
        self._fail(f"{slug} is not closed: {reason}" for slug, reason in closed.failed)

    def _finalise(self, options: dict[str, Any]) -> None:
        if not options["invoice"]:
            done = finalise_all()
            self._table([_row(invoice) for invoice in done.invoices])
            self._warn_of_boxes(done.invoices)
            self._fail(f"{waiting.invoice} waits: {waiting.why}" for waiting in done.waiting)
            return
        done_here = [
            finalise_invoice(one.pk, now=timezone.now(), accept=options["accept"]) for one in options["invoice"]
        ]
        self._table([_row(invoice) for invoice in done_here])
        self._warn_of_boxes(done_here)

    def _warn_of_boxes(self, invoices: list[Invoice]) -> None:
        for warning in filter(None, map(boxes_in, invoices)):
            self.stderr.write(self.style.WARNING(warning))

    def _void(self, options: dict[str, Any]) -> None:
        self._table([_row(void_invoice(options["invoice"].pk, reason=options["reason"]))])

    def _credit(self, options: dict[str, Any]) -> None:
        note = credit_invoice(options["invoice"].pk, reason=options["reason"], net=options["net"])
        self._table([_row(note)])

    def _export(self, options: dict[str, Any]) -> None:
        _write(options["output"], export(options["invoice"], options["format"]))

    def _records(self, options: dict[str, Any]) -> None:
        lines = options["invoice"].lines.select_related("invoice").order_by("position")
        if options["line"] is not None:
            lines = lines.filter(position=options["line"])
            if not lines:
                raise CommandError(f"{options['invoice']} has no line {options['line']}")
        for told in sorted({str(records_behind(line)) for line in lines} - {""}):
            self.stderr.write(told)
        _write(options["output"], records_csv(lines))

    def _fail(self, lines: Iterable[str]) -> None:
        """Say what did not go, and end with 1 if there is anything."""
        told = list(lines)
        for line in told:
            self.stderr.write(line)
        if told:
            self.stdout.flush()
            sys.exit(1)


def _row(invoice: Invoice) -> dict[str, str | None]:
    amounts = {name: shown(getattr(invoice, name), invoice.currency) for name in ("net", "tax", "total")}
    return {
        "id": str(invoice.pk),
        "number": invoice.number,
        "tenant": invoice.tenant_id,
        "period": invoice.label,
        **{name: str(getattr(invoice, name)) for name in ("kind", "status", "currency")},
        **amounts,
    }


def _write(name: str, pieces: Iterator[bytes]) -> None:
    if name == "-":
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return
    try:
        with Path(name).open("wb") as file:
            file.writelines(pieces)
    except OSError as error:
        raise CommandError(f"{name} cannot be written: {error.strerror}") from error


def _invoice(text: str) -> Invoice:
    numbered = Invoice.objects.filter(number=text).first()
    if numbered is not None:
        return numbered
    digits = text.replace("-", "").lower()
    if not 4 <= len(digits) <= 32 or not set(digits) <= set("0123456789abcdef"):
        raise ArgumentTypeError(f"there is no invoice {text}")
    first, last = UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
    found = list(Invoice.objects.filter(pk__gte=first, pk__lte=last)[:2])
    if len(found) != 1:
        raise ArgumentTypeError(f"{'several invoices begin with' if found else 'there is no invoice'} {text}")
    return found[0]


def _amount(text: str) -> Decimal:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        raise ArgumentTypeError(f"{text} is not an amount") from None
    if not amount.is_finite():
        raise ArgumentTypeError(f"{text} is not an amount")
    return amount
