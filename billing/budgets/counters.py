"""The counters of all budgets, as the ledger has them: made ahead of their windows, and made anew when lost.

A counter is what the ledger has of its window, adjustments, what still stands in the stream, and what runs (held). It
is set, never added to: two rebuilds at once, or one repeated, come to the same. Nothing here may run in a transaction.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import redis
from django.db import connection

from billing import drain, drain_lock
from billing.models import Budget
from billing.periods import Window, Zones, read_zones
from billing.usage import iso
from tenants.meters import counters
from tenants.meters.counters import Wanted, key_of

# Until every process has read of a new budget, requests may start that do not hold from it.
GROWN_MS = 2500
KEPT = timedelta(days=3)  # beyond the window: for streams that began in it
_AT_ONCE = 500
log = logging.getLogger("headrace.budgets")

# What the ledger has of each window. Hours are the tenant's own, so windows end between them.
_SUMS = """
SELECT coalesce((
    SELECT sum(h.cost_nano) + sum(h.cost_nano_beyond) FROM billing_usagehour h
    WHERE h.tenant = w.tenant AND h.hour >= w.first AND h.hour < w.last
      AND (w.project = '' OR h.project = w.project) AND (w.key = '' OR h.key = w.key)
      AND (w.model = '' OR h.model = w.model)), 0)
  + coalesce((SELECT sum(a.nano) FROM billing_budgetadjustment a
              WHERE a.budget_id = w.budget AND a.window_start = w.first), 0)
FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[], %s::text[], %s::timestamptz[], %s::timestamptz[])
     WITH ORDINALITY AS w (budget, tenant, project, key, model, first, last, number)
ORDER BY w.number
"""


class Part(NamedTuple):
    """One window of one budget."""

    budget: Budget
    window: Window

    @property
    def key(self) -> str:
        return key_of(self.budget.pk, self.window.start_ms)


def current(budgets: Iterable[Budget], now: datetime, *, zones: Zones | None = None) -> list[Part]:
    """The windows in which `now` lies."""
    budgets = list(budgets)
    zones = zones or read_zones({budget.tenant_id for budget in budgets})
    return [Part(budget, zones.window_at(budget.tenant_id, budget.period, now)) for budget in budgets]


def keep(client: "redis.Redis", *, now: datetime | None = None, patience: float = 0) -> int:
    """Make the counters that are missing, of this window and the next; how many. For every second.

    After a loss (another server, or another run of it) none is trusted: all are made anew. With the data the holds of
    running requests may be lost, until their processes put them back: so none is trusted again for `patience` seconds,
    within which every process that lives renews its leases; then all are made once more.
    """
    now = now or datetime.now(UTC)
    run = counters.run_id(client)
    budgets, disabled = _by_state()
    zones = read_zones()
    counters.let_go(client, [part.key for part in _with_next(disabled, now, zones)])
    needed = {part.key: part for part in _with_next(budgets, now, zones)}
    if not counters.is_trusted(client, run):
        doubted = counters.doubted_ms(client, run)
        is_over = doubted >= patience * 1000
        if is_over or not doubted:
            if needed:
                log.warning("the budgets' counters are made anew: %d", len(needed))
            counters.drop(client, keep=())
            counters.note_young(client, needed)
            rebuild(client, needed.values())
            if is_over:
                counters.trust(client, run)
            return len(needed)
    found = counters.read(client, list(needed))
    missing = {key for key, counter in zip(needed, found, strict=True) if counter is None}
    grown = counters.grown(client, ms=GROWN_MS)
    nobodys = set()
    for key in counters.wanted(client) - missing:
        if (part := needed.get(key) or part_of(key, budgets, zones)) is not None:
            needed[key] = part
            missing.add(key)
        else:
            nobodys.add(key)
    counters.forget_wanted(client, nobodys)
    again = grown & needed.keys()
    if missing or again:
        # Whatever fails on the way: what was wanted is until it is made, and what is young is made once more.
        counters.note_young(client, missing)
        rebuild(client, [needed[key] for key in missing | again])
    counters.forget_young(client, grown - missing)
    return len(missing)


def rebuild_all(client: "redis.Redis", budgets: Iterable[Budget] | None = None, *, now: datetime | None = None) -> int:
    """Make the counters of these budgets anew (all enabled ones, and drop what is of no budget); how many.

    After a loss it is `keep` that trusts them again.
    """
    chosen = budgets
    if chosen is None:
        chosen = Budget.objects.filter(enabled=True)
    parts = _with_next(chosen, now or datetime.now(UTC), read_zones())
    rebuild(client, parts)
    if budgets is None:
        counters.drop(client, keep=[part.key for part in parts])
    return len(parts)


def rebuild(client: "redis.Redis", parts: Iterable[Part]) -> None:
    """Make these counters anew."""
    parts = list(parts)
    for at in range(0, len(parts), _AT_ONCE):
        with drain_lock.alone():
            drain.drain_pending(client)
            set_counters(client, parts[at : at + _AT_ONCE])


def set_counters(client: "redis.Redis", parts: Sequence[Part]) -> None:
    """Set counters, by whoever holds the drain lock alone and has drained what was pending."""
    sums = ledger_sums(parts)
    counters.rebuild(client, [_wanted(part, total) for part, total in zip(parts, sums, strict=True)])


def ledger_sums(parts: Sequence[Part]) -> list[int]:
    """What the ledger and adjustments have of each part, in nano-units."""
    budgets = [part.budget for part in parts]
    columns: list[Any] = [
        [budget.pk for budget in budgets],
        [budget.tenant_id for budget in budgets],
        [budget.project for budget in budgets],
        [budget.key for budget in budgets],
        [budget.model for budget in budgets],
        [part.window.start for part in parts],
        [part.window.end for part in parts],
    ]
    with connection.cursor() as cursor:
        cursor.execute(_SUMS, columns)
        return [int(total) for (total,) in cursor.fetchall()]


def _wanted(part: Part, total: int) -> Wanted:
    budget, window = part
    expires = None if window.is_endless else window.end_ms + KEPT // timedelta(milliseconds=1)
    return Wanted(
        key=part.key,
        tenant=budget.tenant_id,
        project=budget.project,
        api_key=budget.key,
        model=budget.model,
        first=iso(window.start_ms),
        last=iso(window.end_ms),
        ledger=total,
        expires_ms=expires,
    )


def _by_state() -> tuple[list[Budget], list[Budget]]:
    """The enabled budgets and the others."""
    budgets = list(Budget.objects.all())
    return [one for one in budgets if one.enabled], [one for one in budgets if not one.enabled]


def _with_next(budgets: Iterable[Budget], now: datetime, zones: Zones) -> list[Part]:
    return [part for budget in budgets for part in _two(budget, now, zones)]


def _two(budget: Budget, now: datetime, zones: Zones) -> Iterator[Part]:
    window = zones.window_at(budget.tenant_id, budget.period, now)
    yield Part(budget, window)
    if (following := zones.window_after(budget.tenant_id, budget.period, window)) is not None:
        yield Part(budget, following)


def part_of(key: str, budgets: Iterable[Budget], zones: Zones) -> Part | None:
    """The part whose counter has this key: of a window that has passed, or that a fast clock is in already."""
    number, _, start = key.removeprefix(counters.PREFIX).partition(":")
    try:
        at = datetime.fromtimestamp(int(start), UTC)
    except (ValueError, OverflowError, OSError):
        return None
    for budget in budgets:
        if str(budget.pk) == number:
            part = Part(budget, zones.window_at(budget.tenant_id, budget.period, at))
            return part if part.key == key else None
    return None
