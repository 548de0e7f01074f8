"""How many second attempts there may be: a share of the traffic, so that an outage does not double its own load.

Counted per model over the last 10 seconds, in each process for itself: one retry for every 10 requests, and 10 whatever
the traffic, so that a quiet model finds its way past a dead replica too. A model's outage spends no other's budget.
"""

import time
from collections.abc import Callable

SHARE, FLOOR = 0.1, 10
SECONDS = 10


class _Window:
    """Requests and retries by second, for the last SECONDS."""

    def __init__(self) -> None:
        self._slots: dict[int, list[int]] = {}

    def add(self, second: int, kind: int) -> None:
        slot = self._slots.get(second)
        if slot is None:
            self._slots = {at: counts for at, counts in self._slots.items() if at > second - SECONDS}
            slot = self._slots[second] = [0, 0]
        slot[kind] += 1

    def total(self, second: int, kind: int) -> int:
        return sum(counts[kind] for at, counts in self._slots.items() if at > second - SECONDS)


class RetryBudget:
    """The budgets of a process, by model."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._windows: dict[str, _Window] = {}

    def note_request(self, model: str) -> None:
        """A request for `model` is sent for the first time."""
        self._window(model).add(int(self._clock()), 0)

    def take(self, model: str) -> bool:
        """Whether a further attempt may be made now; if so, it is counted."""
        window, second = self._window(model), int(self._clock())
        allowed = max(FLOOR, int(SHARE * window.total(second, 0)))
        if window.total(second, 1) >= allowed:
            return False
        window.add(second, 1)
        return True

    def _window(self, model: str) -> _Window:
        return self._windows.setdefault(model, _Window())
