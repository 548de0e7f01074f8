"""A tenant's requests, newest first, page by page: never more work than a page, whatever is looked for."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db.models import Q

from billing.models import Status, UsageRecord
from billing.models.usage_record import UsageQuerySet
from billing.usage import SHADOW
from tenants.models import Tenant

PAGE = 50
WINDOW = 10_000  # records that one page looks through for what was asked; "older" goes on from there
FILTERS = ("project", "key", "model", "status")


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the log a page begins: before this record. Its order is that of the index."""

    admitted_at: datetime
    request_id: UUID

    @classmethod
    def read(cls, text: str) -> "Place | None":
        """From a request's id: a UUIDv7 holds its own time. None for any other text."""
        try:
            request_id = UUID(text.removeprefix("chatcmpl-"))
            return cls(datetime.fromtimestamp((request_id.int >> 80) / 1000, UTC), request_id)
        except (ValueError, OverflowError, OSError):
            return None


@dataclass(frozen=True, slots=True)
class Page:
    records: list[UsageRecord]
    older: UUID | None  # before which the next page begins; None: there is nothing older
    is_partial: bool = False  # WINDOW was looked through without filling the page


def page(tenant: Tenant, chosen: dict[str, str], before: Place | None) -> Page:
    rows = _requests(tenant)
    if before is not None:
        rows = rows.filter(admitted_at__lte=before.admitted_at).filter(
            Q(admitted_at__lt=before.admitted_at) | Q(request_id__lt=before.request_id)
        )
    wanted = {name: value for name, value in chosen.items() if value}
    if wanted.get("status", Status.OK) != Status.OK:
        rows = narrowed(rows, {"status": wanted.pop("status")})  # an index has these
    if not wanted:
        return _cut(list(rows[: PAGE + 1]))
    edge = rows[WINDOW : WINDOW + 1].first()
    found = narrowed(rows, wanted)
    if edge is not None:
        found = found.filter(admitted_at__gt=edge.admitted_at)
    shown = _cut(list(found[: PAGE + 1]))
    if shown.older is None and edge is not None:
        return replace(shown, older=edge.request_id, is_partial=True)
    return shown


def recent(tenant: Tenant, chosen: dict[str, str], since: datetime) -> list[UsageRecord]:
    """The newest page of those admitted since then."""
    rows = _requests(tenant).filter(admitted_at__gte=since)
    return list(narrowed(rows, {name: value for name, value in chosen.items() if value})[:PAGE])


def _requests(tenant: Tenant) -> UsageQuerySet[UsageRecord]:
    """All that its clients sent: shadow copies are nobody's."""
    return UsageRecord.objects.of(tenant).exclude(kind=SHADOW)


def narrowed(rows: UsageQuerySet[UsageRecord], wanted: dict[str, str]) -> UsageQuerySet[UsageRecord]:
    """Of `status` "failed" is all that went wrong on our side or the engine's."""
    conditions: dict[str, Any] = dict(wanted)
    if conditions.get("status") == "failed":
        conditions.pop("status")
        conditions["status__in"] = [Status.ERROR, Status.INCOMPLETE, Status.REAPED]
    return rows.filter(**conditions)


def _cut(found: list[UsageRecord]) -> Page:
    return Page(found[:PAGE], found[PAGE - 1].request_id if len(found) > PAGE else None)
