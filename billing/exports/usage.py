"""A tenant's usage as plain values, one mapping a record, under the names that the API and the log line use too."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any
from uuid import UUID

from django.db.models import F, QuerySet

from billing import pricing
from billing.models import DroppedMonth, UsageCorrection, UsageRecord
from billing.models.usage_record import Usage
from billing.partitions import month_span
from tenants.models import Tenant

FIELDS = (
    "request_id", "tenant", "project", "key", "model", "target", "replica", "kind", "status", "finish_reason",
    "input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens", "usage_source", "cost", "currency",
    "price", "admitted_at", "finished_at", "queue_ms", "ttft_ms", "tpot_ms", "fallback", "cache", "labels",
    "uncached_input_tokens", "upstream_id",
)  # fmt: skip
CORRECTED = (
    "part", "kind", "status", "input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens",
    "usage_source", "cost", "finished_at",
)  # fmt: skip
CHUNK = 1000


def usage_rows(
    tenant: Tenant, *, start: datetime | None = None, end: datetime | None = None, most: int
) -> Iterator[dict[str, Any]]:
    """The newest `most` records admitted within [start, end), newest first, read in chunks as they are asked for.

    Each has FIELDS, and `corrections`: a list of what was found to have been used beyond it, mostly empty. Costs are
    decimal text, exact, and None while unpriced; times are ISO 8601 in UTC with milliseconds.
    """
    records = UsageRecord.objects.of(tenant)
    if start is not None:
        records = records.filter(admitted_at__gte=start)
    if end is not None:
        records = records.filter(admitted_at__lt=end)
    rows = _values(records[:most], FIELDS).iterator(chunk_size=CHUNK)
    while chunk := list(islice(rows, CHUNK)):
        corrections = _corrections(tenant, chunk)
        for values in chunk:
            values["corrections"] = corrections.get(values["request_id"], [])
            yield _plain(values)


def dropped_within(start: datetime | None, end: datetime | None) -> list[str]:
    """The months (UTC) within [start, end) whose records retention has dropped, and when."""
    dropped = DroppedMonth.objects.only("month", "dropped_at").order_by("month")
    return [
        f"{one.month:%Y-%m} (on {one.dropped_at:%Y-%m-%d})"
        for one in dropped
        for first, last in [month_span(one.month)]
        if (start is None or last > start) and (end is None or first < end)
    ]


def _values(rows: QuerySet[Any], names: Iterable[str]) -> QuerySet[Any, dict[str, Any]]:
    """Mappings instead of records, which take twice as long to make."""
    uncached = F("input_tokens") - F("cached_input_tokens")
    values: QuerySet[Any, dict[str, Any]] = rows.annotate(uncached_input_tokens=uncached).values(*names)
    return values


def _corrections(tenant: Tenant, records: list[dict[str, Any]]) -> dict[UUID, list[dict[str, Any]]]:
    """By request. Records are of one span without gaps, which names its corrections as well as a thousand ids would,
    and no id has to be written out, read and compared."""
    found: dict[UUID, list[dict[str, Any]]] = defaultdict(list)
    span = (records[-1]["admitted_at"], records[0]["admitted_at"])
    for row in UsageCorrection.objects.of(tenant).filter(admitted_at__range=span).order_by("request_id", "part"):
        found[row.request_id].append(plain_values(row, CORRECTED))
    return found


def plain_values(row: Usage, names: Iterable[str]) -> dict[str, Any]:
    """The named fields as JSON has them: times ISO 8601 in UTC with milliseconds, decimals and ids as text."""
    return _plain({name: getattr(row, name) for name in names})


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    for name, as_text in _TEXTS.items():
        if values.get(name) is not None:
            values[name] = as_text(values[name])
    return values


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


_TEXTS: dict[str, Callable[[Any], str]] = {
    "request_id": str,
    "cost": pricing.text,
    "admitted_at": _iso,
    "finished_at": _iso,
}
