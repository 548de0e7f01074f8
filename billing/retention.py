"""How long records are kept: whole months, by dropping their partition. Hours, days, prices, invoices stay for good.

A month goes only when nothing can still be made of its records: KEEPERS say what it is needed for.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime

from billing import partitions
from billing.invoicing.needed_months import needed_by_invoices
from billing.models import DeadLetter

log = logging.getLogger("headrace.ledger")

# Each answers for one month: why its records are needed yet, None if they are not.
Keeper = Callable[[date], str | None]


@dataclass(frozen=True)
class Kept:
    """A month that is older than what is kept, and why it stays."""

    month: date
    reason: str


@dataclass(frozen=True)
class Retained:
    """What a run did. `dropped`: records by month."""

    dropped: dict[date, int]
    kept: list[Kept]


def _dead_letters(month: date) -> str | None:
    """Usage that waits for a replay would find no partition."""
    waiting = DeadLetter.objects.filter(replayed_at=None, event__contains=f'"admitted_at":"{month:%Y-%m}-').count()
    return f"{waiting} dead letters of it wait" if waiting else None


KEEPERS: list[Keeper] = [needed_by_invoices, _dead_letters]


def drop_old(months: int, now: datetime | None = None) -> Retained:
    """Drop each month that ended `months` months ago or more (0: none ever). May be repeated, and run twice at once.

    Oldest first; after one that is needed nothing is dropped, so that what is kept has no gap.
    """
    dropped: dict[date, int] = {}
    if not months:
        return Retained(dropped, [])
    first_kept = partitions.shift((now or datetime.now(UTC)).astimezone(UTC).date(), -months)
    for month in sorted(month for month in partitions.existing_months() if month < first_kept):
        if reason := next((said for keeper in KEEPERS if (said := keeper(month))), None):
            log.warning("the records of %s are kept: %s", f"{month:%Y-%m}", reason)
            return Retained(dropped, [Kept(month, reason)])
        if (records := partitions.drop_month(month)) is not None:
            log.info("dropped the %d records of %s", records, f"{month:%Y-%m}")
            dropped[month] = records
    return Retained(dropped, [])
