"""Requests: the list, live; and one, with its timeline, its tokens, what it cost and why, and what became of it."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.shortcuts import render

from billing.models import Price, Status, UsageCorrection, UsageRecord
from headrace.portal import live, log
from headrace.portal.request import PortalRequest, asked
from headrace_core import audit
from tenants.models import ApiKey, Project

STATES = {
    "ok": "good",
    "cancelled": "quiet",
    "abandoned": "quiet",
    "error": "bad",
    "incomplete": "bad",
    "reaped": "bad",
}


@dataclass(frozen=True, slots=True)
class Step:
    """A stretch of a request's time: from `start`, for `length`, in percent of all of it."""

    name: str
    milliseconds: float
    start: float
    length: float
    number: int


@dataclass(frozen=True, slots=True)
class Charge:
    """One factor of a cost: tokens at a rate per million."""

    name: str
    tokens: int
    rate: Decimal | None

    @property
    def amount(self) -> Decimal | None:
        return None if self.rate is None else (self.tokens * self.rate).scaleb(-6)


def listing(request: PortalRequest) -> HttpResponse:
    chosen = {name: asked(request, name) for name in log.FILTERS}
    before = log.Place.read(asked(request, "before"))
    page = log.page(request.tenant, chosen, before)
    projects = Project.objects.of(request.tenant).order_by("slug").values_list("slug", flat=True)
    query = request.GET.copy()
    query.pop("before", None)
    context = {
        "page": page,
        "chosen": chosen,
        "is_newest": before is None,
        "projects": list(projects),
        "statuses": ["failed", *Status.values],
        "keys": key_names(page.records),
        "query": query.urlencode(),
        "is_filtered": any(chosen.values()),
        "has_key": ApiKey.objects.of(request.tenant).exists(),
    }
    return render(request, "portal/requests.html", context)


def follow(request: PortalRequest) -> StreamingHttpResponse:
    """Server-sent events: the rows of what comes into the ledger from now on. The browser comes back when it ends."""
    chosen = {name: asked(request, name) for name in log.FILTERS}
    events = live.events(request.tenant, chosen, who=request.user.get_username(), origin=audit.origin_of(request))
    response = StreamingHttpResponse(events, content_type="text/event-stream")
    response["X-Accel-Buffering"] = "no"
    return response


def one(request: PortalRequest, request_id: UUID) -> HttpResponse:
    place = log.Place.read(str(request_id))
    rows = UsageRecord.objects.of(request.tenant)
    record = rows.filter(pk=request_id, admitted_at=place.admitted_at).first() if place else None
    if record is None:
        raise Http404
    corrections = UsageCorrection.objects.of(request.tenant).filter(
        request_id=record.pk, admitted_at=record.admitted_at
    )
    context = {
        "record": record,
        "steps": _steps(record),
        "took": _milliseconds(record),
        "charges": _charges(record),
        "corrections": list(corrections.order_by("part")),
        "key": ApiKey.objects.of(request.tenant).filter(pk=record.key).first(),
        "uncached": record.input_tokens - record.cached_input_tokens,
        "is_pending": record.cost is None,
    }
    return render(request, "portal/request.html", context)


def key_names(records: list[UsageRecord]) -> dict[str, str]:
    return dict(ApiKey.objects.filter(pk__in={record.key for record in records}).values_list("pk", "name"))


def _milliseconds(record: UsageRecord) -> float:
    return (record.finished_at - record.admitted_at).total_seconds() * 1000


def _steps(record: UsageRecord) -> list[Step]:
    """Waiting, then reading the prompt until the first token, then the rest. Without a token: waiting and the rest."""
    whole = max(_milliseconds(record), 1.0)
    waited = min(record.queue_ms, whole)
    first = min(max(record.ttft_ms, waited), whole) if record.ttft_ms is not None else waited
    stretches: list[tuple[str, float, float, int]] = [("Queued", 0.0, waited, 4)]
    if record.ttft_ms is not None:
        stretches.append(("To the first token", waited, first, 1))
    stretches.append(("Tokens" if record.ttft_ms is not None else "Without an answer", first, whole, 2))
    return [
        Step(name, end - start, 100 * start / whole, 100 * (end - start) / whole, number)
        for name, start, end, number in stretches
        if end > start
    ]


def _charges(record: UsageRecord) -> list[Charge]:
    price = Price.objects.filter(version=record.price).first() if record.price else None
    rates: list[Any] = [price.input, price.cached_input, price.output] if price else [None] * 3
    tokens = [record.input_tokens - record.cached_input_tokens, record.cached_input_tokens, record.output_tokens]
    names = ("Uncached input", "Cached input", "Output")
    return [Charge(*each) for each in zip(names, tokens, rates, strict=True)]
