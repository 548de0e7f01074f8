"""Each budget's counter = what the ledger has of its window, adjustments, and what is settled and not yet drained.

Only counters that requests are held against are compared: those the server's present run is trusted with.
"""

import time
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import Any
from uuid import UUID

import msgspec
import redis

from billing import drain_lock
from billing.budgets.counters import Part, ledger_sums, part_of
from billing.ledger_check.check import Check, Outcome, rows
from billing.models import Budget
from billing.periods import read_zones
from tenants.meters import counters
from tenants.meters.holds import HOLDS, USAGE
from tenants.meters.scope import Scope

# A new counter is made anew once every process has learnt of its budget (counters.GROWN_MS); until then it may be off.
_TRIES, _PAUSE = 7, 0.5
_KNOWN = "SELECT request_id::text, part FROM billing_usagerecord WHERE request_id = ANY(%s::uuid[])"


class _Event(msgspec.Struct):
    """What is read of an event to know which budgets it was charged to."""

    request_id: str = ""
    part: int = 0
    tenant: str = ""
    project: str = ""
    key: str = ""
    model: str = ""
    admitted_at: str = ""
    cost_nano: int | None = None


class Budgets(Check):
    name = "budgets"
    text = (
        "each budget's counter = cost of its window in ledger and stream + adjustments; nothing held when nothing runs"
    )

    def run(self, client: "redis.Redis", months: Sequence[date] | None = None) -> Outcome:
        """A difference counts if it stays."""
        outcome = self._once(client)
        for _ in range(_TRIES - 1):
            if outcome.total:
                time.sleep(_PAUSE)
                outcome = self._once(client)
        return outcome

    def _once(self, client: "redis.Redis") -> Outcome:
        outcome = Outcome()
        if not counters.is_trusted(client, counters.run_id(client)):
            return outcome  # all of them are made anew before they count
        with drain_lock.alone():  # nothing moves from the stream to the ledger meanwhile
            parts = _parts(client)
            moment = _moment(client, parts)
            for part, ledger, (spent, held) in zip(parts, ledger_sums(parts), moment.counters, strict=True):
                outcome.compared += 1
                right = ledger + sum(event.cost_nano or 0 for event in moment.events if _counts(part, event))
                which = f"{part.budget} from {part.window.start:%Y-%m-%dT%H:%MZ}"
                if _counted(spent) != _counted(right):
                    outcome.add(f"{which}: {spent}, not {right}")
                if held and not moment.holds:
                    outcome.add(f"{which}: {held} is held, and nothing runs")
        return outcome


def _counted(nano: int) -> int:
    """As far as a counter counts."""
    return max(-counters.MOST, min(counters.MOST, nano))


class _Moment(msgspec.Struct):
    """Redis at one moment: counters as (spent, held), the events that wait, how many requests run."""

    counters: list[tuple[int, int]]
    events: list[_Event]
    holds: int


def _parts(client: "redis.Redis") -> list[Part]:
    """The windows that have a whole counter, of enabled budgets."""
    budgets, zones = list(Budget.objects.filter(enabled=True)), read_zones()
    keys = [key.decode() for key in client.scan_iter(f"{counters.PREFIX}*", count=1000)]
    known = [part for key in sorted(keys) if (part := part_of(key, budgets, zones)) is not None]
    found = counters.read(client, [part.key for part in known])
    return [part for part, counter in zip(known, found, strict=True) if counter is not None]


def _moment(client: "redis.Redis", parts: Sequence[Part]) -> _Moment:
    with client.pipeline(transaction=True) as pipeline:
        pipeline.zcard(HOLDS)
        pipeline.xrange(USAGE)
        for part in parts:
            pipeline.hmget(part.key, ["spent", "held"])
        running, entries, *found = pipeline.execute()
    return _Moment(
        [tuple(map(int, counter)) for counter in found],  # type: ignore[misc]
        list(_waiting(entries)),
        int(running),
    )


def _waiting(entries: list[Any]) -> Iterator[_Event]:
    """The events of the stream that the ledger has not: a drain may have died between writing and acknowledging."""
    events: dict[tuple[str, int], _Event] = {}
    for _, fields in entries:
        try:
            event = msgspec.json.decode(fields.get(b"e", b""), type=_Event)
            UUID(event.request_id)
        except (msgspec.DecodeError, ValueError):
            continue  # a dead letter to be: it is charged to nobody
        events.setdefault((event.request_id, event.part), event)
    known = {(row["request_id"], row["part"]) for row in rows(_KNOWN, [[request_id for request_id, _ in events]])}
    return (event for name, event in events.items() if name not in known)


def _counts(part: Part, event: _Event) -> bool:
    budget, window = part
    scope = Scope(budget.project, budget.key, budget.model)
    if event.tenant != budget.tenant_id or not scope.covers(Scope(event.project, event.key, event.model)):
        return False
    return window.start <= datetime.fromisoformat(event.admitted_at) < window.end
