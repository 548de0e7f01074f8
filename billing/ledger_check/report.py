"""Running the checks, and telling what they found."""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from billing.ledger_check.check import Outcome
from billing.ledger_check.registry import CHECKS
from billing.ledger_check.waiting import waiting
from billing.models import DroppedMonth


@dataclass
class Report:
    """`outcomes` by the name of the check. Clean: none of them found a difference."""

    outcomes: dict[str, Outcome]
    seconds: dict[str, float]
    waiting: dict[str, int]
    dropped: list[str]

    @property
    def differences(self) -> int:
        return sum(outcome.total for outcome in self.outcomes.values())

    @property
    def is_clean(self) -> bool:
        return self.differences == 0

    def as_object(self) -> dict[str, Any]:
        return {
            "parameters": {"checks": list(self.outcomes), "dropped_months": self.dropped},
            "checks": [
                {
                    "name": name,
                    "text": CHECKS[name].text,
                    "compared": outcome.compared,
                    "total": outcome.total,
                    "differences": outcome.differences,
                    "seconds": round(self.seconds[name], 3),
                }
                for name, outcome in self.outcomes.items()
            ],
            "waiting": self.waiting,
            "verdict": {"clean": self.is_clean, "differences": self.differences},
        }

    def as_json(self) -> str:
        return json.dumps(self.as_object())

    def as_lines(self) -> Iterator[str]:
        for name, outcome in self.outcomes.items():
            state = f"{outcome.total:,} DIFFER" if outcome.total else "agree"
            yield f"{name:12} {outcome.compared:>12,} compared, {state}: {CHECKS[name].text}"
            yield from (f"    {difference}" for difference in outcome.differences)
            if outcome.total > len(outcome.differences):
                yield f"    and {outcome.total - len(outcome.differences):,} more"
        if self.dropped:
            yield f"without the records of {', '.join(self.dropped)}, which retention has dropped"
        yield "waiting: " + ", ".join(f"{count:,} {what.replace('_', ' ')}" for what, count in self.waiting.items())
        yield "clean" if self.is_clean else f"{self.differences:,} differences"


def check(
    client: "redis.Redis", *, spool: Path, names: Iterable[str] = (), say: Callable[[str], None] = lambda _: None
) -> Report:
    """Run the checks of these names (all). Raises redis.RedisError or django.db.OperationalError, knowing nothing."""
    outcomes, seconds = {}, {}
    for name in list(names) or CHECKS:
        say(name)
        began = time.monotonic()
        outcomes[name] = CHECKS[name].run(client)
        seconds[name] = time.monotonic() - began
    dropped = [str(month) for month in DroppedMonth.objects.order_by("month")]
    return Report(outcomes, seconds, waiting(client, spool), dropped)
