"""The way out for usage that came without a price: a price that holds by now is put on it, by corrections.

Such a correction is of kind `pricing`: it repeats the tokens of its row, at rates, and is no use of its own, so whoever
adds up tokens leaves the kind out. It goes through the stream and the ledger like any other, and to the budgets that
the request counts in, of the period in which it was admitted: their counters are made anew.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec
import redis
from django.db import connection
from django.db.models import Exists, F, Max, Min, OuterRef, Q
from django.utils import timezone

from billing.budgets.recounting import Use, recount
from billing.models import UsageHour, UsageRecord
from billing.models.price import LEAD, Price
from billing.price_book import SELECT, PriceBook, Quote
from billing.pricing import Rates
from billing.usage import PRICED_PARTS, PRICING, SHADOW, UsageEvent, iso, priced
from tenants.meters.holds import USAGE

BATCH = 1000
_SAME = (
    "tenant", "project", "key", "model", "target", "replica", "status", "finish_reason", "input_tokens",
    "cached_input_tokens", "output_tokens", "reasoning_tokens", "usage_source", "currency", "fallback", "cache",
    "upstream_id",
)  # fmt: skip


_NO_TOKENS = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0}


@dataclass
class LatePricing:
    """Rows that were given a price, by its version; and those that none fits, by (tenant, model, currency)."""

    priced: Counter[str] = field(default_factory=Counter)
    left: Counter[tuple[str, str, str]] = field(default_factory=Counter)


def price_unpriced(
    client: "redis.Redis", *, tenant: str | None = None, now: datetime | None = None, dry_run: bool = False
) -> LatePricing:
    """Append a correction for each kept row without a price: at the price in force when it was admitted, else at that
    in force now. What is a correction of a request that was priced late before has the price of that. May be repeated,
    and run twice at once. The drain writes them within seconds."""
    book, result = _book(), LatePricing()
    # A price that was set just now begins in a moment.
    now_ms = int(((now or timezone.now()) + LEAD).timestamp() * 1000)
    events: list[bytes] = []
    uses: list[Use] = []
    for row in _unpriced_rows(tenant):
        where = {"model": row.model, "target": row.target, "tenant": row.tenant, "currency": row.currency}
        then_ms = row.request_id.int >> 80
        before = _priced_before(row)
        quote = before or book.find(**where, at_ms=then_ms) or book.find(**where, at_ms=now_ms)
        if quote is None:
            result.left[row.tenant, row.model, row.currency] += 1
            continue
        result.priced[quote.version] += 1
        event = UsageEvent(
            **{name: getattr(row, name) for name in _SAME},
            request_id=str(row.request_id),
            part=PRICED_PARTS + row.part,
            kind=PRICING,
            price=quote.version,
            rates=quote.rates,
            admitted_at=iso(then_ms),
            finished_at=iso(row.finished_at.timestamp() * 1000),
            labels=row.labels,
        )
        events.append(msgspec.json.encode(priced(event)))
        uses.append(Use(row.tenant, row.project, row.key, row.model, row.admitted_at))
        if len(events) == BATCH:
            _append(client, events, dry_run=dry_run)
    _append(client, events, dry_run=dry_run)
    if not dry_run:
        recount(client, uses)
    return result


def _priced_before(row: UsageRecord) -> Quote | None:
    """The price that was put late on the request which `row` corrects: at another it would give back too much or too
    little."""
    if row.part == 0:
        return None
    others = UsageRecord.rows.of(row.tenant).filter(
        request_id=row.request_id, admitted_at=row.admitted_at, kind=PRICING, target=row.target
    )
    version = others.order_by("part").values_list("price", flat=True).first()
    price = Price.objects.filter(version=version).first()
    return Quote(price.version, Rates(price.input, price.cached_input, price.output)) if price else None


def _append(client: "redis.Redis", events: list[bytes], *, dry_run: bool) -> None:
    if events and not dry_run:
        with client.pipeline() as pipeline:
            for event in events:
                pipeline.xadd(USAGE, {"e": event})
            pipeline.execute()
    events.clear()


def _book() -> PriceBook:
    with connection.cursor() as cursor:
        cursor.execute(SELECT)
        return PriceBook(cursor.fetchall())


def _unpriced_rows(tenant: str | None) -> Iterator[UsageRecord]:
    """Rows with tokens and no price that no correction has priced, found by the hours that have any."""
    for slug, first, last in _spans(tenant):
        rows = UsageRecord.rows.of(slug).filter(
            price=None,
            admitted_at__gte=first,
            admitted_at__lt=last + timedelta(hours=2),  # an hour has ninety minutes where clocks go back by thirty
        )
        priced_later = UsageRecord.rows.filter(
            request_id=OuterRef("request_id"), admitted_at=OuterRef("admitted_at"), part=PRICED_PARTS + OuterRef("part")
        )
        rows = rows.exclude(kind=SHADOW).exclude(Exists(priced_later)).exclude(**_NO_TOKENS)
        yield from rows.order_by("admitted_at", "request_id", "part").iterator(chunk_size=BATCH)


def _spans(tenant: str | None) -> Iterable[tuple[str, datetime, datetime]]:
    # An hour whose tokens a correction took back has rows of both.
    hours = UsageHour.objects.filter(~Q(**_NO_TOKENS) | Q(corrections__gt=0), price="").exclude(kind=SHADOW)
    if tenant is not None:
        hours = hours.of(tenant)
    return hours.order_by("tenant").values_list("tenant").annotate(Min("hour"), Max("hour")).order_by(F("tenant"))
