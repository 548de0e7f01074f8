"""The operators' pages on invoices: drafts and what they wait for, lines with the records behind them, exports."""

from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import RangeDateTimeFilter
from unfold.decorators import action, display
from unfold.forms import BaseDialogForm
from unfold.widgets import UnfoldAdminDecimalFieldWidget, UnfoldAdminTextInputWidget

from billing import amounts
from billing.exports.cells import marked
from billing.exports.formats import FORMATS, export, file_name
from billing.exports.record_rows import records_csv
from billing.invoicing.crediting import credit_invoice
from billing.invoicing.errors import InvoiceError
from billing.invoicing.finalising import boxes_in, finalise_invoice
from billing.invoicing.records import first_records, records_behind
from billing.invoicing.voiding import void_invoice
from billing.models import Invoice, InvoiceLine
from billing.tasks import make_invoices
from headrace.console.cells import refreshed
from headrace.console.confirmation import dialog
from headrace.console.exact_filter import exact_filter
from headrace.console.growing_lists import GrowingList
from headrace.console.money_cells import total
from headrace_core import audit

COLOURS = {"draft": "warning", "finalised": "success", "voided": "danger"}
_HEADS = (
    ("", ""), ("", "What"), ("", "Project"), ("", "Price"), ("hr-right", "Tokens"), ("hr-right", "Per million"),
    ("hr-right", "Amount"), ("", ""),
)  # fmt: skip
SHOWN_RECORDS = 100
MOST_RECORDS = 50_000  # of one download; `manage.py invoices records` writes all


class ReasonForm(BaseDialogForm):
    reason = forms.CharField(max_length=200, widget=UnfoldAdminTextInputWidget)


class CreditForm(ReasonForm):
    net = forms.DecimalField(
        required=False,
        min_value=Decimal("0.001"),
        widget=UnfoldAdminDecimalFieldWidget,
        help_text="Before tax; empty: all that is left of the invoice.",
    )


@admin.register(Invoice)
class InvoiceAdmin(GrowingList):
    list_display = ("name", "for_tenant", "month", "kind_label", "state", "amount", "issued")
    list_filter = (exact_filter("tenant_id", "tenant"), "status", "kind", ("period_start", RangeDateTimeFilter))
    search_fields = ("number__exact",)
    search_help_text = "A number"
    actions_list = ("run",)
    actions_detail = (
        {"title": "Export", "icon": "download", "items": ["as_pdf", "as_csv", "as_xlsx", "as_json", "as_focus"]},
        "finalise",
        "credit",
        "void",
    )
    fieldsets = (
        (None, {"fields": [("name", "state"), ("tenant", "seller"), ("month", "span"), ("issued", "of_invoice")]}),
        ("Lines", {"fields": ["lines"]}),
        ("Document", {"fields": [("content_hash", "id"), ("voided_at", "void_reason")]}),
    )
    readonly_fields = ("name", "state", "seller", "month", "span", "issued", "lines")
    list_select_related = ("legal_entity",)

    def get_actions_detail(self, request: HttpRequest, object_id: Any) -> list[Any]:
        """Of those that change an invoice the ones that it can still go through."""
        invoice = Invoice.objects.filter(pk=object_id).only("status", "kind").first()
        can = {"draft": ("finalise",), "finalised": ("credit", "void")}.get(invoice.status if invoice else "", ())
        idle = {"finalise", "credit", "void"}.difference(can)
        if invoice and invoice.is_credit_note:
            idle.add("credit")
        actions = super().get_actions_detail(request, object_id)
        return [each for each in actions if not each.action_name.endswith(tuple(idle))]

    def has_issue_permission(self, request: HttpRequest, object_id: str | None = None) -> bool:
        return request.user.has_perm("billing.change_invoice")

    def get_urls(self) -> list[URLPattern]:
        behind = self.admin_site.admin_view(self.records_view)
        own = [path("<uuid:pk>/records/<int:position>/", behind, name="billing_invoice_records")]
        urls: list[URLPattern] = own + super().get_urls()
        return urls

    @display(description="Number", ordering="sequence")
    def name(self, invoice: Invoice) -> str:
        return invoice.number or "draft"

    @display(description="Tenant", ordering="tenant_id")
    def for_tenant(self, invoice: Invoice) -> str:
        return invoice.tenant_id

    @display(description="Period", ordering="period_start")
    def month(self, invoice: Invoice) -> str:
        return invoice.label

    @display(description="Kind")
    def kind_label(self, invoice: Invoice) -> str:
        return invoice.kind.replace("_", " ").capitalize()

    @display(description="State", label=COLOURS)
    def state(self, invoice: Invoice) -> str:
        return invoice.status

    @display(description="Total", ordering="total")
    def amount(self, invoice: Invoice) -> SafeString:
        return total(invoice.total, invoice.currency)

    @display(description="Issued (UTC)", ordering="finalised_at")
    def issued(self, invoice: Invoice) -> str:
        return f"{invoice.finalised_at:%Y-%m-%d %H:%M}" if invoice.finalised_at else "\u2013"

    @display(description="Invoiced by")
    def seller(self, invoice: Invoice) -> str:
        return str(invoice.legal_entity or "\u2013")

    @display(description="From and up to (UTC)")
    def span(self, invoice: Invoice) -> str:
        start, end = invoice.period_start, invoice.period_end
        return f"{start:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M}, months of {invoice.time_zone}"

    @display(description="")
    def lines(self, invoice: Invoice) -> SafeString:
        rows = [
            (
                str(line.position),
                line.description,
                line.project or "\u2013",
                line.price or "\u2013",
                "\u2013" if line.quantity is None else f"{line.quantity:,}",
                amounts.priced(line.unit_price, invoice.currency),
                total(line.amount, invoice.currency),
                _records_link(line),
            )
            for line in invoice.lines.order_by("position")
        ]
        rows += [("", words, "", "", "", "", total(sum_, invoice.currency), "") for words, sum_ in _sums(invoice)]
        cells = "".join(f'<td class="{kind}"{_label(name)}>{{}}</td>' for kind, name in _HEADS)
        body = format_html_join("", f"<tr>{cells}</tr>", rows)
        head = format_html_join("", '<th class="{}">{}</th>', _HEADS)
        table = format_html(
            '<table class="hr-table hr-stack"><thead><tr>{}</tr></thead><tbody>{}</tbody></table>', head, body
        )
        return format_html('<div class="hr-table-frame">{}</div>', table)

    def records_view(self, request: HttpRequest, pk: UUID, position: int) -> HttpResponse:
        """The records behind a line: the first of them, all as CSV, and when those were dropped that are gone."""
        if not request.user.has_perm("billing.view_invoice") or not request.user.has_perm("billing.view_usagerecord"):
            raise PermissionDenied
        line = InvoiceLine.objects.select_related("invoice").filter(invoice=pk, position=position).first()
        if line is None:
            raise Http404
        if request.GET.get("format") == "csv":
            name = f"{file_name(line.invoice, 'csv').removesuffix('.csv')}-line-{position}.csv"
            return _download(marked(records_csv([line], most=MOST_RECORDS)), FORMATS["csv"].content_type, name)
        behind = records_behind(line)
        context = self.admin_site.each_context(request) | {
            "title": f"Records behind line {position} of {line.invoice}",
            "line": line,
            "rows": first_records(line, SHOWN_RECORDS),
            "shown": SHOWN_RECORDS,
            "most": MOST_RECORDS,
            "dropped": str(behind),
            "opts": self.opts,
        }
        return TemplateResponse(request, "admin/billing/invoice_records.html", context)

    @action(
        description="Close and finalise",
        permissions=["issue"],
        icon="play_arrow",
        url_path="run",
        dialog=dialog(
            "Close periods and finalise what is due?",
            "The worker computes the drafts of all periods that are over, and makes invoices of those whose grace time "
            "is over and that wait for nothing. It does so by itself every hour.",
            "Run",
        ),
    )
    def run(self, request: HttpRequest, form: Any) -> HttpResponse:
        asked = partial(make_invoices.delay, request.user.get_username(), audit.origin_of(request))
        transaction.on_commit(asked)
        self.message_user(request, "The worker is at it.", messages.SUCCESS)
        return refreshed()

    @action(
        description="Finalise",
        permissions=["issue"],
        icon="task_alt",
        url_path="finalise",
        dialog=dialog(
            "Finalise this draft?",
            "It is computed a last time and takes the next number. After that it can only be voided or credited.",
            "Finalise",
        ),
    )
    def finalise(self, request: HttpRequest, form: Any, object_id: str) -> HttpResponse:
        def finalise() -> Invoice:
            invoice = finalise_invoice(_id_of(object_id))
            if warning := boxes_in(invoice):
                self.message_user(request, warning, messages.WARNING)
            return invoice

        return self._do(request, "is finalised", finalise)

    @action(
        description="Credit",
        permissions=["issue"],
        icon="undo",
        url_path="credit",
        dialog=dialog("Issue a credit note?", "It takes the next number and is final.", "Issue", CreditForm),
    )
    def credit(self, request: HttpRequest, form: Any, object_id: str) -> HttpResponse:
        values = form.cleaned_data
        return self._do(
            request, "is issued", lambda: credit_invoice(_id_of(object_id), reason=values["reason"], net=values["net"])
        )

    @action(
        description="Void",
        permissions=["issue"],
        icon="block",
        url_path="void",
        dialog=dialog(
            "Void this for good?",
            "It keeps its number and counts no more. The usage of an invoice is invoiced again by the next closing.",
            "Void",
            ReasonForm,
        ),
    )
    def void(self, request: HttpRequest, form: Any, object_id: str) -> HttpResponse:
        reason = form.cleaned_data["reason"]
        return self._do(request, "is voided", lambda: void_invoice(_id_of(object_id), reason=reason))

    def _do(self, request: HttpRequest, done: str, verb: Any) -> HttpResponse:
        try:
            self.message_user(request, f"{verb()} {done}.", messages.SUCCESS)
        except InvoiceError as error:
            self.message_user(request, f"Nothing is changed: {error}.", messages.ERROR)
        return refreshed()

    @action(description="PDF", permissions=["view"], url_path="pdf")
    def as_pdf(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._export(request, object_id, "pdf")

    @action(description="CSV", permissions=["view"], url_path="csv")
    def as_csv(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._export(request, object_id, "csv")

    @action(description="Excel", permissions=["view"], url_path="xlsx")
    def as_xlsx(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._export(request, object_id, "xlsx")

    @action(description="JSON", permissions=["view"], url_path="json")
    def as_json(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._export(request, object_id, "json")

    @action(description="FOCUS 1.2", permissions=["view"], url_path="focus")
    def as_focus(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._export(request, object_id, "focus")

    def _export(self, request: HttpRequest, object_id: str, form: str) -> HttpResponse:
        invoice = self.get_object(request, object_id)
        if invoice is None:
            raise Http404
        pieces = export(invoice, form)
        pieces = marked(pieces) if form == "csv" else pieces
        return _download(pieces, FORMATS[form].content_type, file_name(invoice, form))


def _id_of(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Http404 from None


def _label(heading: str) -> str:
    return f' data-label="{heading}"' if heading else ""


def _records_link(line: InvoiceLine) -> SafeString | str:
    if not line.has_records:
        return ""
    url = reverse("admin:billing_invoice_records", args=[line.invoice_id, line.position])
    return format_html('<a class="hr-link" href="{}">Records</a>', url)


def _sums(invoice: Invoice) -> list[tuple[str, Decimal]]:
    return [("Net", invoice.net), ("Tax", invoice.tax), ("Total", invoice.total)]


def _download(pieces: Iterator[bytes], content_type: str, name: str) -> HttpResponse:
    response = HttpResponse(pieces, content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "no-store"
    return response
