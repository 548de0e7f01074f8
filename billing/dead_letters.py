"""Events that the ledger could not take: kept whole with the reason, shown to operators, replayed when it is mended."""

import logging
from collections.abc import Iterable

import redis
from django.utils import timezone

from billing.models import DeadLetter
from headrace_core import store_keys
from tenants.meters import counters
from tenants.meters.holds import USAGE

LONGEST_EVENT = 2**20
# How many were buried, as Redis counts them.
BURIED = store_keys.DEAD_LETTERS
log = logging.getLogger("headrace.ledger")


def bury(letters: Iterable[tuple[str, bytes, str]]) -> int:
    """Keep events by (entry id, event, reason); how many there were. May be repeated: an entry is kept once."""
    rows = [
        DeadLetter(entry=entry, event=_text(event), reason=_text(reason.encode())) for entry, event, reason in letters
    ]
    for row in rows:
        log.error("usage event %s goes to the dead letters: %s", row.entry, row.reason)
    DeadLetter.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)


def replay(client: "redis.Redis", letters: Iterable[DeadLetter]) -> int:
    """Append the events to the stream again; how many. May be repeated: the ledger takes a request once.

    Budgets' counters are made anew soon: one that was made meanwhile knows nothing of what lay here.
    """
    count = 0
    for letter in letters:
        client.xadd(USAGE, {"e": letter.event})
        DeadLetter.objects.filter(pk=letter.pk).update(replayed_at=timezone.now())
        count += 1
    if count:
        counters.want_all(client)
    return count


def _text(event: bytes) -> str:
    """As PostgreSQL stores it: bytes that are no UTF-8 and NULs are written as escapes, and the end may be cut."""
    return event[:LONGEST_EVENT].decode("utf-8", "backslashreplace").replace("\x00", "\\x00")
