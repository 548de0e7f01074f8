"""Running the checks, and telling what they found."""

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import redis

from billing.ledger_check.check import Outcome
from billing.ledger_check.months import all_months
from billing.ledger_check.registry import CHECKS
from billing.ledger_check.waiting import waiting
from billing.models import DroppedMonth


@dataclass
class Report:
    """`outcomes` by the name of the check, over these `months`; `is_whole`: they are all there are.

    Clean: no check found a difference.
    """

    outcomes: dict[str, Outcome]
    seconds: dict[str, float]
    waiting: dict[str, int]
    dropped: list[str]
    months: list[date]
    is_whole: bool

    @property
    def differences(self) -> int:
        return sum(outcome.total for outcome in self.outcomes.values())

    @property
    def differing(self) -> set[date]:
        """The months in which there are differences."""
        return {month for outcome in self.outcomes.values() for month in outcome.months}

    @property
    def is_clean(self) -> bool:
        return self.differences == 0

    def as_object(self) -> dict[str, Any]:
        return {
            "parameters": {
                "checks": list(self.outcomes),
                "months": [f"{month:%Y-%m}" for month in self.months],
                "all_months": self.is_whole,
                "dropped_months": self.dropped,
            },
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
        read = ", ".join(f"{month:%Y-%m}" for month in self.months) or "none"
        yield f"months read: {read}" + ("" if self.is_whole else "; with --all every one is")
        if self.dropped:
            yield f"without the records of {', '.join(self.dropped)}, which retention has dropped"
        yield "waiting: " + ", ".join(f"{count:,} {what.replace('_', ' ')}" for what, count in self.waiting.items())
        yield "clean" if self.is_clean else f"{self.differences:,} differences"


def check(
    client: "redis.Redis",
    *,
    spool: Path,
    names: Iterable[str] = (),
    months: Collection[date] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Report:
    """Run the checks of these names (all) over these months (all). Raises redis.RedisError or
    django.db.OperationalError, knowing nothing.
    """
    outcomes, seconds = {}, {}
    chosen = all_months() if months is None else sorted(months)
    for name in list(names) or CHECKS:
        say(name)
        began = time.monotonic()
        outcomes[name] = CHECKS[name].run(client, chosen)
        seconds[name] = time.monotonic() - began
    dropped = [str(month) for month in DroppedMonth.objects.order_by("month")]
    return Report(outcomes, seconds, waiting(client, spool), dropped, chosen, months is None)
