"""Each budget's counter = what the ledger and the stream have of its window, and adjustments."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import msgspec
import redis

from billing import drain_lock
from billing.budgets.counters import Part, current, ledger_sums
from billing.ledger_check.check import Check, Outcome, rows
from billing.models import Budget
from billing.usage import UsageEvent, iso
from tenants.meters.holds import USAGE

_KNOWN = "SELECT request_id::text, part FROM billing_usagerecord WHERE request_id = ANY(%s::uuid[])"


class Budgets(Check):
    name = "budgets"
    text = "each budget's counter = the cost of its window on record and in the stream, and adjustments"

    def run(self, client: "redis.Redis") -> Outcome:
        outcome = Outcome()
        budgets = Budget.objects.filter(enabled=True).select_related("tenant")
        with drain_lock.alone():  # an entry is either in the stream or in the ledger
            parts = current(budgets, datetime.now(UTC))
            with client.pipeline(transaction=True) as pipeline:
                for part in parts:
                    pipeline.hget(part.key, "spent")
                pipeline.xrange(USAGE)
                *counters, entries = pipeline.execute()
            waiting = list(_waiting(entries))
            for part, spent, total in zip(parts, counters, ledger_sums(parts), strict=True):
                if spent is None:
                    continue  # it is being made
                outcome.compared += 1
                expected = total + sum(event.cost_nano or 0 for event in waiting if _counts(part, event))
                if int(spent) != expected:
                    outcome.add(f"{part.budget} from {part.window.start:%Y-%m-%dT%H:%MZ}: {int(spent)}, not {expected}")
        return outcome


def _waiting(entries: Iterable[tuple[bytes, dict[bytes, bytes]]]) -> Iterator[UsageEvent]:
    """The events of the stream that the ledger has not."""
    events: dict[tuple[str, int], UsageEvent] = {}
    for _, fields in entries:
        try:
            event = msgspec.json.decode(fields.get(b"e", b""), type=UsageEvent)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue  # a dead letter to be
        events.setdefault((event.request_id, event.part), event)
    known = {(row["request_id"], row["part"]) for row in rows(_KNOWN, [[request_id for request_id, _ in events]])}
    return (event for name, event in events.items() if name not in known)


def _counts(part: Part, event: UsageEvent) -> bool:
    budget, window = part
    return (
        event.tenant == budget.tenant_id
        and budget.project in {"", event.project}
        and budget.key in {"", event.key}
        and budget.model in {"", event.model}
        and iso(window.start_ms) <= event.admitted_at < iso(window.end_ms)
    )
