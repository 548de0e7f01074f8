"""The operators' pages on the ledger: records, corrections, hours and dead letters. Nothing here is changed by hand."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import redis
from django.conf import settings
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import RangeDateTimeFilter
from unfold.decorators import action, display

from billing import dead_letters
from billing.models import DeadLetter, UsageCorrection, UsageHour, UsageRecord
from billing.usage import PRICING
from headrace.console.cells import number
from headrace.console.confirmation import question
from headrace.console.exact_filter import exact_filter
from headrace.console.growing_lists import GrowingList
from headrace.console.moment_filter import moment_filter
from headrace.console.money_cells import cost

STATUS_COLOURS = {
    "ok": "success",
    "cancelled": "warning",
    "error": "danger",
    "incomplete": "danger",
    "abandoned": "info",
    "reaped": "warning",
}


def _to_the_millisecond(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(" ", "milliseconds").removesuffix("+00:00")


class Tokens:
    """Columns that records, corrections and hours share."""

    @display(description="Input")
    def input(self, row: Any) -> SafeString:
        return number(row.input_tokens)

    @display(description="Cached")
    def cached(self, row: Any) -> SafeString:
        return number(row.cached_input_tokens)

    @display(description="Output")
    def output(self, row: Any) -> SafeString:
        return number(row.output_tokens)

    @display(description="Cost")
    def amount(self, row: Any) -> SafeString:
        return cost(row.cost, row.currency)


class Records(Tokens, GrowingList):
    """Records are found by their id, which holds the time: one partition is looked into."""

    list_filter = (
        exact_filter("tenant"),
        exact_filter("project"),
        exact_filter("key", "key (public id)"),
        exact_filter("model"),
        "status",
        ("admitted_at", RangeDateTimeFilter),
    )
    search_fields = ("request_id",)
    search_help_text = "A request's id"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        if not search_term:
            return queryset, False
        try:
            request_id = UUID(search_term.strip().removeprefix("chatcmpl-"))
        except ValueError:
            self.message_user(request, f"{search_term} is not a request's id.", messages.WARNING)
            return queryset.none(), False
        return queryset.filter(request_id=request_id), False

    @display(description="Admitted (UTC)", ordering="admitted_at")
    def admitted(self, row: Any) -> str:
        return _to_the_millisecond(row.admitted_at)

    @display(description="Status", label=STATUS_COLOURS)
    def status_label(self, row: Any) -> str:
        return str(row.status)


@admin.register(UsageRecord)
class UsageRecordAdmin(Records):
    list_display: tuple[str, ...] = (
        "admitted", "tenant", "model", "target", "status_label", "input", "cached", "output", "amount", "first_token",
        "took",
    )  # fmt: skip
    fieldsets: Any = (
        (None, {"fields": [("request_id", "upstream_id"), ("status", "finish_reason"), ("admitted", "finished")]}),
        ("Who", {"fields": [("tenant", "project"), ("key", "kind")]}),
        ("Where", {"fields": [("model", "target"), ("replica", "fallback"), "cache"]}),
        ("Use", {"fields": [("input", "cached"), ("output", "reasoning"), ("usage_source", "corrected")]}),
        ("Money", {"fields": [("exact_cost", "price")]}),
        ("Times", {"fields": [("queued", "first_token"), ("each_token", "took")]}),
        ("Labels", {"fields": ["its_labels"]}),
    )
    readonly_fields = (
        "admitted", "finished", "input", "cached", "output", "reasoning", "corrected", "exact_cost", "queued",
        "first_token", "each_token", "took", "its_labels",
    )  # fmt: skip

    @display(description="Labels")
    def its_labels(self, record: UsageRecord) -> str:
        return ", ".join(f"{name}={value}" for name, value in record.labels.items()) or "none"

    @display(description="Cost, exact")
    def exact_cost(self, record: UsageRecord) -> str:
        return "unpriced" if record.cost is None else f"{record.cost:f} {record.currency}"

    @display(description="Finished (UTC)")
    def finished(self, record: UsageRecord) -> str:
        return _to_the_millisecond(record.finished_at)

    @display(description="Reasoning, of the output")
    def reasoning(self, record: UsageRecord) -> SafeString:
        return number(record.reasoning_tokens)

    @display(description="Queued for")
    def queued(self, record: UsageRecord) -> SafeString:
        return number(record.queue_ms, "ms")

    @display(description="Each further token")
    def each_token(self, record: UsageRecord) -> SafeString:
        return number(record.tpot_ms, "ms", digits=1)

    @display(description="First token")
    def first_token(self, record: UsageRecord) -> SafeString:
        return number(record.ttft_ms, "ms")

    @display(description="Took")
    def took(self, record: UsageRecord) -> SafeString:
        return number((record.finished_at - record.admitted_at) / timedelta(milliseconds=1), "ms")

    @display(description="Found to be used beyond the record")
    def corrected(self, record: UsageRecord) -> str:
        rows = UsageCorrection.objects.filter(request_id=record.request_id, admitted_at=record.admitted_at)
        rows = rows.exclude(kind=PRICING)
        return (
            "; ".join(f"{row.input_tokens:,} input, {row.output_tokens:,} output tokens" for row in rows) or "nothing"
        )


@admin.register(UsageCorrection)
class UsageCorrectionAdmin(UsageRecordAdmin):
    list_display = ("admitted", "tenant", "model", "part", "input", "cached", "output", "amount", "request_id")
    fieldsets = (
        (None, {"fields": [("request_id", "part"), ("status", "usage_source"), ("admitted", "finished")]}),
        ("Who", {"fields": [("tenant", "project"), ("key", "kind")]}),
        ("Where", {"fields": [("model", "target"), "replica"]}),
        ("Use", {"fields": [("input", "cached"), ("output", "reasoning")]}),
        ("Money", {"fields": [("exact_cost", "price")]}),
    )


@admin.register(UsageHour)
class UsageHourAdmin(Tokens, GrowingList):
    list_display = (
        "began", "tenant", "project", "model", "target", "n_requests", "n_errors", "input", "cached", "output",
        "amount", "n_unpriced",
    )  # fmt: skip
    list_filter = (exact_filter("tenant"), exact_filter("model"), ("hour", RangeDateTimeFilter))
    fieldsets = (
        (None, {"fields": [("began", "tenant"), ("project", "key"), ("model", "target"), ("kind", "price")]}),
        (
            "Requests",
            {
                "fields": [
                    ("n_requests", "n_errors"),
                    ("n_cancelled", "n_abandoned"),
                    ("n_estimated", "n_unpriced"),
                    "n_corrections",
                ]
            },
        ),
        ("Tokens", {"fields": [("input", "cached"), ("output", "reasoning")]}),
        ("Money", {"fields": [("amount", "charged")]}),
    )
    readonly_fields = (
        "began", "n_requests", "n_errors", "n_cancelled", "n_abandoned", "n_estimated", "n_unpriced", "n_corrections",
        "input", "cached", "output", "reasoning", "amount", "charged",
    )  # fmt: skip

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        return ("-hour", "tenant", "id")

    @display(description="Hour began (UTC)", ordering="hour")
    def began(self, hour: UsageHour) -> str:
        return f"{hour.hour:%Y-%m-%d %H:%M}"

    @display(description="Requests")
    def n_requests(self, hour: UsageHour) -> SafeString:
        return number(hour.requests)

    @display(description="Errors")
    def n_errors(self, hour: UsageHour) -> SafeString:
        return number(hour.errors)

    @display(description="Cost")
    def amount(self, hour: UsageHour) -> SafeString:
        has_price = hour.cost or hour.unpriced < hour.requests or not hour.unpriced
        return cost(hour.cost if has_price else None, hour.currency)

    @display(description="Unpriced")
    def n_unpriced(self, hour: UsageHour) -> SafeString:
        return number(hour.unpriced)

    @display(description="Cancelled")
    def n_cancelled(self, hour: UsageHour) -> SafeString:
        return number(hour.cancelled)

    @display(description="Abandoned")
    def n_abandoned(self, hour: UsageHour) -> SafeString:
        return number(hour.abandoned)

    @display(description="Tokens estimated by us")
    def n_estimated(self, hour: UsageHour) -> SafeString:
        return number(hour.estimated)

    @display(description="Corrections")
    def n_corrections(self, hour: UsageHour) -> SafeString:
        return number(hour.corrections)

    @display(description="Reasoning, of the output")
    def reasoning(self, hour: UsageHour) -> SafeString:
        return number(hour.reasoning_tokens)

    @display(description="Put onto budgets")
    def charged(self, hour: UsageHour) -> SafeString:
        return cost(Decimal(hour.charged_nano).scaleb(-9), hour.currency)


@admin.register(DeadLetter)
class DeadLetterAdmin(GrowingList):
    list_display = ("arrived", "reason", "replayed", "entry")
    list_filter = (("replayed_at", moment_filter("state", "Waits", "Replayed")),)
    fields = (("at", "replayed_at"), "entry", "reason", "event")
    actions = ("replay",)

    def has_replay_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("billing.change_deadletter")

    @display(description="Arrived (UTC)", ordering="at")
    def arrived(self, letter: DeadLetter) -> str:
        return f"{letter.at:%Y-%m-%d %H:%M:%S}"

    @display(description="State", label={"waits": "danger", "replayed": "success"})
    def replayed(self, letter: DeadLetter) -> str:
        return "replayed" if letter.replayed_at else "waits"

    @action(description="Replay: give the selected events to the ledger again", permissions=["replay"])
    def replay(self, request: HttpRequest, letters: QuerySet[DeadLetter]) -> HttpResponse | None:
        if asking := question(
            self, request, letters, action="replay", title="Give these events to the ledger again?",
            effect="What it can take by now becomes a usage record and is charged to its tenant; a request that it has "
            "already is not taken twice. All budgets are counted anew then. What it still cannot take comes back here.",
            button="Replay",
        ):  # fmt: skip
            return asking
        try:
            with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=2) as client:
                count = dead_letters.replay(client, letters.filter(replayed_at=None))
        except redis.RedisError as error:
            self.message_user(request, f"Redis is away, nothing more was replayed: {error}", messages.ERROR)
            return None
        self.message_user(request, f"{count} replayed; one that still cannot be taken comes back.", messages.SUCCESS)
        return None
