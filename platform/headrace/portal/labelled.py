"""Usage by label, out of single records: the rollups know no labels.

It looks through the newest MOST records of a span, and is exact of those, corrections with their requests: never more
work than that, however much is in the ledger. The reader is told how far back it looked.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connections

from billing.ledger import SUMS
from billing.local_buckets import day_of, hour_of, zone_join
from billing.models import UsageRecord
from billing.usage import PRICING, SHADOW
from headrace.portal.cells import Cells
from headrace.portal.figures import Figures
from headrace.portal.period import Period
from headrace.portal.rollups import DIMENSIONS
from headrace.portal.rollups import SUMS as NAMES
from headrace.portal.rows import APP
from tenants.models import Tenant

MOST = 10_000
NAMED = 1000  # newest records whose labels are offered to choose from
OFFERED = 50
BY_LABEL = "label:"  # how grouping by a label is asked for: label:user

_TOKENS = frozenset({"input_tokens", "cached_input_tokens", "output_tokens"})
# As Rollup.total: the tokens of rows that price others late are those others'.
_COLUMNS = ", ".join(
    f"coalesce(sum({name}) FILTER (WHERE kind <> '{PRICING}'), 0)" if name in _TOKENS else SUMS[name] for name in NAMES
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """`by` is a dimension, `label:` and a label's name, or "" (time alone); `label` with `value` narrows."""

    by: str
    chosen: dict[str, str]
    label: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True)
class Labelled(Cells):
    """Only what was admitted after `since` was looked at; None: all of the span."""

    since: datetime | None


def names(tenant: Tenant, span: Period) -> list[str]:
    """The labels that the newest records of the span have."""
    with connections[APP].cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT jsonb_object_keys(labels) AS name FROM (SELECT labels FROM billing_usagerecord"
            " WHERE tenant = %s AND admitted_at >= %s AND admitted_at < %s"
            " ORDER BY admitted_at DESC, request_id DESC LIMIT %s) AS newest ORDER BY name LIMIT %s",
            [tenant.pk, span.start, span.end, NAMED, OFFERED],
        )
        return [name for (name,) in cursor.fetchall()]


def labelled(tenant: Tenant, span: Period, wanted: Wanted, *, by_hour: bool) -> Labelled:
    """Steps are the tenant's hours or days."""
    edge = _edge(tenant, span)
    step = hour_of("admitted_at") if by_hour else day_of("admitted_at")
    where = ["r.tenant = %s", "currency = %s", "admitted_at >= %s", "admitted_at < %s", f"kind <> '{SHADOW}'"]
    values: list[Any] = [tenant.pk, tenant.currency, span.start, span.end]
    if edge is not None:
        where.append("(admitted_at, request_id) > (%s, %s)")
        values += edge
    for name in DIMENSIONS:
        if value := wanted.chosen.get(name):
            where.append(f"{name} = %s")
            values.append(value)
    if wanted.label:
        where.append("coalesce(labels ->> %s, '') = %s" if wanted.value else "labels ? %s")
        values += [wanted.label, wanted.value] if wanted.value else [wanted.label]
    group, named = _group(wanted.by)
    with connections[APP].cursor() as cursor:
        cursor.execute(
            f"SELECT {step} AS step, {group} AS name, {_COLUMNS}"
            f" FROM billing_usagerecord AS r {zone_join('r.tenant', 'admitted_at')}"
            f" WHERE {' AND '.join(where)} GROUP BY 1, 2",
            [*named, *values],
        )
        cells = [(step, Figures(name, *sums)) for step, name, *sums in cursor.fetchall()]
    return Labelled(cells, span.calendar, edge[0] if edge else None)


def _group(by: str) -> tuple[str, list[str]]:
    if by in DIMENSIONS:
        return by, []
    return ("coalesce(labels ->> %s, '')", [by.removeprefix(BY_LABEL)]) if by else ("''", [])


def _edge(tenant: Tenant, span: Period) -> tuple[datetime, Any] | None:
    """Where the records that are looked through begin: after this one. Found in the index alone."""
    rows = UsageRecord.rows.of(tenant).filter(admitted_at__gte=span.start, admitted_at__lt=span.end)
    newest = rows.order_by("-admitted_at", "-request_id").values_list("admitted_at", "request_id")
    return newest[MOST : MOST + 1].first()
