"""When a price begins: not before every process is sure to know it, by the database's clock.

A price that takes another's place begins LEAD after it is committed at the earliest: by then every web process has read
it (it asks each half second), and clocks may differ by the rest. One that takes nobody's place begins at once: what a
process admits without knowing it is given it by the drain (repricing.py). Prices begin on whole milliseconds, as
requests are admitted, and the millisecond in which one begins is its own.

The transaction may take its time: `headrace_price_start`, a trigger, looks once more when it commits, and moves on the
beginning of a price that would come too early. So whoever confirms a price reads its beginning after the commit.
"""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from billing.models import UsageRecord
from billing.models.price import LEAD, MEANT_AS_NOW, Price

_CLOCKS_DIFFER = timedelta(minutes=1)


class TooEarly(ValueError):
    """The price would begin in the past, which stays as it was charged."""


def start_of(price: Price, wanted: datetime | None) -> datetime:
    """The moment at which `price`, saved in this transaction, begins where `wanted` (None: at once) is asked for.

    What was asked for within the last minute means at once. Raises TooEarly for anything before.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT clock_timestamp(), transaction_timestamp(), set_config('headrace.price_starts', 'on', true)"
        )
        now, since, _ = cursor.fetchone()
    if wanted is not None and wanted < now - MEANT_AS_NOW:
        raise TooEarly
    earliest = now
    if _places_taken(price, since).exists():
        earliest = max(now + LEAD, _after_the_latest(now))
    return whole_ms(max(wanted or earliest, earliest))


def _after_the_latest(now: datetime) -> datetime:
    """After the last request on record of a process whose clock is ahead of the database's by a minute at most."""
    end = now + _CLOCKS_DIFFER
    bounds = [UUID(int=int(moment.timestamp() * 1000) << 80) for moment in (now, end)]
    rows = UsageRecord.rows.filter(request_id__range=bounds, admitted_at__gte=now, admitted_at__lt=end)
    latest = rows.order_by("-request_id").values_list("admitted_at", flat=True).first()
    return now if latest is None else latest + timedelta(milliseconds=1)


def _places_taken(price: Price, before: datetime) -> QuerySet[Price]:
    """The prices, begun before then, that requests of `price` would pay without it: the trigger asks the same."""
    rows = Price.objects.filter(model=price.model, currency=price.currency, effective_from__lt=before)
    return rows.filter(target__in=("", price.target), tenant__in=("", price.tenant)).exclude(pk=price.pk)


def successor_of(price: Price) -> Price | None:
    """The price that takes its place, set by now."""
    names = ("model", "target", "tenant", "currency")
    rows = Price.objects.filter(**{name: getattr(price, name) for name in names}).exclude(pk=price.pk)
    return rows.filter(effective_from__gt=price.effective_from).order_by("effective_from").first()


def told_start(price: Price) -> str:
    """From when to when it holds, to the millisecond."""
    told = f"{_iso(price.effective_from)}"
    later = successor_of(price)
    return f"{told}, until {later} takes its place at {_iso(later.effective_from)}" if later else told


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def whole_ms(moment: datetime) -> datetime:
    """The first whole millisecond from `moment` on."""
    past = timedelta(microseconds=moment.microsecond % 1000)
    return moment + timedelta(milliseconds=1) - past if past else moment
