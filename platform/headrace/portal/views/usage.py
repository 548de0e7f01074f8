"""Usage: filtered, grouped, drawn, and taken away as CSV of exactly what is shown."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from headrace.portal import cells, figures, labelled
from headrace.portal.cells import Source
from headrace.portal.downloads import spreadsheet
from headrace.portal.labelled import BY_LABEL
from headrace.portal.period import CHOICES, Period, period
from headrace.portal.request import PortalRequest, asked
from headrace.portal.rollups import DIMENSIONS, rollups
from headrace.portal.views.charting import MOST_DRAWN, chart, stacked
from tenants.models import ApiKey, Tenant

GROUPS = {"model": "Model", "project": "Project", "key": "API key", "target": "Target", "day": "Day", "hour": "Hour"}
MOST = 1000  # lines on a page; a narrower filter shows the rest
WITHOUT = "without it"  # the group of those that lack the label
_COUNTS = (
    "requests", "failed", "cancelled", "unpriced", "uncached_input_tokens", "cached_input_tokens", "output_tokens",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Report:
    """What a page of usage shows, and its CSV says. `label`: to which single requests are narrowed, with its value."""

    span: Period
    by: str
    chosen: dict[str, str]
    label: tuple[str, str]
    lines: list[figures.Figures]
    total: figures.Figures
    source: Source

    @property
    def is_cut(self) -> bool:
        return len(self.lines) == MOST

    @property
    def by_label(self) -> str:
        """The label's name, "" where it is not grouped by one."""
        return self.by.removeprefix(BY_LABEL) if self.by.startswith(BY_LABEL) else ""

    @property
    def is_narrowed(self) -> bool:
        return any(self.chosen.values()) or bool(self.label[0] or self.by_label)

    @property
    def is_of_records(self) -> bool:
        return isinstance(self.source, labelled.Labelled)

    @property
    def heading(self) -> str:
        return f"Label {self.by_label}" if self.by_label else GROUPS[self.by]


def usage(request: PortalRequest) -> HttpResponse:
    report, tenant = _report(request), request.tenant
    known = figures.values(rollups(tenant, report.span.start, report.span.end))
    names = _key_names(tenant, {*known["key"], report.chosen["key"]})
    filters = [
        (name, GROUPS[name], [(each, names.get(each, each) if name == "key" else each) for each in known[name]])
        for name in DIMENSIONS
    ]
    offered = {*labelled.names(tenant, report.span), report.by_label, report.label[0]} - {""}
    context = {
        "report": report,
        "span": report.span,
        "periods": CHOICES,
        "groups": GROUPS,
        "labels": sorted(offered),
        "most": labelled.MOST,
        "filters": filters,
        "names": names,
        "query": request.GET.urlencode(),
        "chart": json.dumps(_chart(report, names)) if report.lines else "",
    }
    return render(request, "portal/usage.html", context)


def export(request: PortalRequest) -> HttpResponse:
    """The lines of the page with the same address, exact. Times are the tenant's, with their offset."""
    report, tenant = _report(request), request.tenant
    names = _key_names(tenant, {line.name for line in report.lines}) if report.by == "key" else {}
    columns = [report.by, *(["key_name"] if report.by == "key" else []), *_COUNTS, "cost", "currency"]
    rows = ({report.by: _name(line), "key_name": names.get(line.name, "")} | _values(line, tenant.currency)
            for line in report.lines)  # fmt: skip
    name = f"usage-{tenant.slug}-{report.span.name}-by-{'label' if report.by_label else report.by}.csv"
    return spreadsheet(columns, rows, numbers=[*_COUNTS, "cost"], name=name)


def _name(line: figures.Figures) -> str:
    return line.name if isinstance(line.name, str) else _moment(line.name)


def _values(line: figures.Figures, currency: str) -> dict[str, Any]:
    return {
        "requests": line.requests,
        "failed": line.errors,
        "cancelled": line.cancelled,
        "unpriced": line.unpriced,
        "uncached_input_tokens": line.uncached_tokens,
        "cached_input_tokens": line.cached_input_tokens,
        "output_tokens": line.output_tokens,
        "cost": None if line.amount is None else format(line.amount, "f"),
        "currency": currency,
    }


def _report(request: PortalRequest) -> Report:
    tenant = request.tenant
    span = period(asked(request, "period"), request.calendar, timezone.now())
    by = asked(request, "by")
    is_by_label = by.startswith(BY_LABEL) and by != BY_LABEL
    by = by if by in GROUPS or is_by_label else "model"
    chosen = {name: asked(request, name) for name in DIMENSIONS}
    label = (asked(request, "label"), asked(request, "value"))
    is_course = by in {"day", "hour"}
    by_hour = span.is_short or by == "hour"
    source: Source
    if label[0] or is_by_label:
        source = labelled.labelled(
            tenant, span, labelled.Wanted("" if is_course else by, chosen, *label), by_hour=by_hour
        )
    else:
        rows = rollups(tenant, span.start, span.end, by_hour=by_hour, **chosen)
        source = cells.over_time(rows) if is_course else cells.Rolled(rows, by)
    lines = source.course(by_hour=by == "hour")[::-1] if is_course else source.grouped()
    if by == "day":
        lines = [replace(line, name=request.calendar.date_at(line.name)) for line in lines]
    return Report(span, by, chosen, label, lines[:MOST], figures.added("", lines), source)


def _chart(report: Report, names: dict[str, str]) -> dict[str, object]:
    """Tokens over time: of the largest groups and of all others together; of days and hours by kind of token."""
    if report.by in {"day", "hour"}:
        steps = report.source.course(by_hour=report.span.is_short)
        kinds = [
            ("Uncached input", "uncached_tokens"),
            ("Cached input", "cached_input_tokens"),
            ("Output", "output_tokens"),
        ]
        columns = [(title, [getattr(step, name) for step in steps]) for title, name in kinds]
        return chart(report.span, [step.name for step in steps], columns, unit="tokens")
    largest = sorted(report.lines, key=lambda line: -line.tokens)[:MOST_DRAWN]
    drawn = [(line.name, names.get(line.name, line.name) or WITHOUT) for line in largest]
    return stacked(report.span, report.source.tokens([line.name for line in largest]), drawn, unit="tokens")


def _key_names(tenant: Tenant, ids: Iterable[str]) -> dict[str, str]:
    found = ApiKey.objects.of(tenant).filter(pk__in=[each for each in ids if each]).select_related("project")
    return {key.pk: f"{key.project.slug}/{key.name}" for key in found}


def _moment(moment: datetime | date) -> str:
    return timezone.localtime(moment).isoformat(timespec="minutes") if isinstance(moment, datetime) else str(moment)
