"""The records behind a line: which rows of the ledger its quantity is the sum of, while they are kept."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db.models import Exists, F, OuterRef, Q, Sum

from billing import partitions
from billing.invoicing.lines import Kind, TokenClass
from billing.models import DroppedMonth, InvoiceLine, LateUsage, UsageHour, UsageQuerySet, UsageRecord
from billing.periods import calendar_of
from billing.usage import SHADOW

_COUNTED = {
    TokenClass.UNCACHED: ~Q(input_tokens=F("cached_input_tokens")),
    TokenClass.CACHED: ~Q(cached_input_tokens=0),
    TokenClass.OUTPUT: ~Q(output_tokens=0),
}


_LONGEST_HOUR = timedelta(minutes=90)  # where clocks are set back by half an hour


@dataclass(frozen=True)
class Behind:
    """`kept` are the rows, records and corrections alike, in order of time. `dropped` are the months (UTC) of which
    retention has dropped them, and when; the hours that they were summed into are kept.
    """

    kept: UsageQuerySet[UsageRecord]
    dropped: list[tuple[date, datetime]]

    def rows(self) -> Iterator[UsageRecord]:
        return self.kept.iterator(chunk_size=2000)

    def __str__(self) -> str:
        """What to say about rows that are gone; empty if none are."""
        gone = [f"{month:%Y-%m} on {at:%Y-%m-%d}" for month, at in self.dropped]
        return f"Retention has dropped the records of {', '.join(gone)} (UTC); their sums are kept." if gone else ""


def records_behind(line: InvoiceLine) -> Behind:
    """The rows whose tokens of the line's class are its quantity. Lines that are no usage have none."""
    invoice = line.invoice
    if not line.has_records:
        return Behind(UsageRecord.rows.none(), [])
    period = calendar_of(invoice.tenant_id).period(line.period)
    rows = UsageRecord.rows.of(invoice.tenant_id).filter(
        _stated(line), admitted_at__gte=period.start, admitted_at__lt=period.end
    )
    late = LateUsage.objects.filter(request_id=OuterRef("request_id"), part=OuterRef("part"))
    mine = invoice if invoice.is_finalised else None
    if line.kind == Kind.ADJUSTMENT:
        rows = rows.filter(Exists(late.filter(invoice=mine)))
    else:
        rows = rows.exclude(Exists(late.exclude(invoice=mine)))
    dropped = DroppedMonth.objects.filter(
        month__gte=partitions.month_of(period.start), month__lt=period.end.date()
    ).order_by("month")
    return Behind(
        rows.exclude(kind=SHADOW).order_by("admitted_at", "request_id", "part"),
        list(dropped.values_list("month", "dropped_at")),
    )


def _stated(line: InvoiceLine) -> Q:
    """What records and hours have in common with the line, their time aside."""
    return _COUNTED[TokenClass(line.token_class)] & _facts(line)


def _facts(line: InvoiceLine) -> Q:
    return Q(project=line.project, model=line.model, price=line.price, currency=line.invoice.currency)


def first_records(line: InvoiceLine, most: int) -> list[UsageRecord]:
    """The first `most` rows behind a line, by way of the hours that they were summed into: of a tenant with millions
    of records a few hours are looked into.
    """
    behind, wanted = records_behind(line), 2 * most
    while line.kind == Kind.USAGE:
        spans, is_all = _spans(line, wanted)
        within = Q(pk__in=[])
        for start, end in spans:
            within |= Q(admitted_at__gte=start, admitted_at__lt=end)
        rows = list(behind.kept.filter(within)[:most])
        if is_all or len(rows) == most:
            return rows
        wanted *= 8  # some requests used nothing of this class
    return list(behind.kept[:most])


def _spans(line: InvoiceLine, wanted: int) -> tuple[list[tuple[datetime, datetime]], bool]:
    """The times of the first hours with so many rows, and whether they are all there are."""
    period = calendar_of(line.invoice.tenant_id).period(line.period)
    # A correction may have taken back in an hour what a record of it had.
    counted = _stated(line) | (Q(corrections__gt=0) & _facts(line))
    hours = UsageHour.objects.of(line.invoice.tenant_id).filter(counted, hour__gte=period.start, hour__lt=period.end)
    counts = hours.order_by("hour").values_list("hour").annotate(rows=Sum(F("requests") + F("corrections")))
    spans: list[tuple[datetime, datetime]] = []
    for hour, rows in counts.exclude(kind=SHADOW)[:wanted]:
        if wanted <= 0:
            return spans, False
        wanted -= rows
        end = hour + _LONGEST_HOUR
        if spans and spans[-1][1] >= hour:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((hour, end))
    return spans, wanted > 0
