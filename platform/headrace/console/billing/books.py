"""The operators' pages on the books as a whole: what the nightly checks found, and which months' records are gone."""

from typing import Any

from django.contrib import admin
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.decorators import display

from billing.models import DroppedMonth, LedgerCheckRun
from headrace.console.cells import number
from headrace.console.growing_lists import GrowingList

_CHECK = "<section><h3>{}: {}</h3><p>{}</p><ul>{}</ul></section>"


@admin.register(LedgerCheckRun)
class LedgerCheckRunAdmin(GrowingList):
    list_display = ("ran", "verdict", "compared", "months")
    fields = ("ran", "verdict", "months", "whole")
    readonly_fields = fields

    @display(description="Ran (UTC)", ordering="at")
    def ran(self, run: LedgerCheckRun) -> str:
        return f"{run.at:%Y-%m-%d %H:%M:%S}"

    @display(description="Verdict", label={"agree": "success", "differ": "danger"})
    def verdict(self, run: LedgerCheckRun) -> str:
        return "differ" if run.differences else "agree"

    @display(description="Compared")
    def compared(self, run: LedgerCheckRun) -> SafeString:
        return number(sum(one["compared"] for one in run.report["checks"]))

    @display(description="Months read")
    def months(self, run: LedgerCheckRun) -> str:
        parameters = run.report.get("parameters", {})
        return "all" if parameters.get("all_months", True) else ", ".join(parameters["months"])

    @display(description="Found")
    def whole(self, run: LedgerCheckRun) -> SafeString:
        """What each check holds, and the first of what differs."""
        checks = format_html_join("", _CHECK, (_words(one) for one in run.report["checks"]))
        return format_html('<div class="hr-findings">{}</div>', checks)


def _words(check: dict[str, Any]) -> tuple[str, str, str, SafeString]:
    found, told = check["total"], check["differences"]
    lines = [*told, *([f"and {found - len(told):,} more"] if found > len(told) else [])]
    state = f"{check['compared']:,} compared, " + (f"{found:,} differ" if found else "all agree")
    listed = format_html_join("", "<li>{}</li>", ([line] for line in lines))
    return check["name"].replace("_", " ").capitalize(), state, check["text"], listed


@admin.register(DroppedMonth)
class DroppedMonthAdmin(GrowingList):
    list_display = ("of", "gone", "rows")
    fields = ("of", "gone", "rows")
    readonly_fields = fields

    @display(description="Month (UTC)", ordering="month")
    def of(self, dropped: DroppedMonth) -> str:
        return str(dropped)

    @display(description="Records dropped (UTC)", ordering="dropped_at")
    def gone(self, dropped: DroppedMonth) -> str:
        return f"{dropped.dropped_at:%Y-%m-%d %H:%M}"

    @display(description="Records")
    def rows(self, dropped: DroppedMonth) -> SafeString:
        return number(dropped.records)
