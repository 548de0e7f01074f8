"""How many further attempts there may be: a share of the traffic, so that an outage does not double its own load.

Counted over the last 10 seconds, in each process for itself, for each tenant and model: the tenant may have one retry
for every 10 of its own first attempts (`share`), so that nobody's failing requests multiply the load on replicas that
all share. A tenant that asks seldom finds its way past a dead replica too: up to FLOOR retries beyond its share, of
which all tenants of a model together have FLOOR_OF_ALL, or the share of all their first attempts where that is more.
So a model's retries are at most twice the share of its traffic, or a few whatever the traffic. A model's outage spends
no other's budget.
"""

import time
from collections.abc import Callable

SHARE, FLOOR, FLOOR_OF_ALL = 0.1, 10, 40
SECONDS = 10

_REQUESTS, _RETRIES, _BEYOND = range(3)


class _Window:
    """Requests, retries, and those of these beyond a tenant's share, by second, for the last SECONDS."""

    def __init__(self) -> None:
        self._slots: dict[int, list[int]] = {}

    def add(self, second: int, kind: int) -> None:
        slot = self._slots.get(second)
        if slot is None:
            self._slots = {at: counts for at, counts in self._slots.items() if at > second - SECONDS}
            slot = self._slots[second] = [0, 0, 0]
        slot[kind] += 1

    def total(self, second: int, kind: int) -> int:
        return sum(counts[kind] for at, counts in self._slots.items() if at > second - SECONDS)

    def is_over(self, second: int) -> bool:
        return all(at <= second - SECONDS for at in self._slots)


class RetryBudget:
    """The budgets of a process, by model and tenant. share: retries for each first attempt of a tenant, 0..1; 0: there
    are none at all, whatever the floors."""

    def __init__(self, *, share: float = SHARE, clock: Callable[[], float] = time.monotonic) -> None:
        self._share, self._clock = share, clock
        self._tenants: dict[tuple[str, str], _Window] = {}
        self._models: dict[str, _Window] = {}
        self._swept = 0

    def note_request(self, model: str, tenant: str) -> None:
        """A request of `tenant` for `model` is sent for the first time."""
        second = self._now()
        for window in self._windows(model, tenant):
            window.add(second, _REQUESTS)

    def take(self, model: str, tenant: str) -> bool:
        """Whether a further attempt may be made now; if so, it is counted."""
        if not self._share:
            return False
        second = self._now()
        own, all_tenants = windows = self._windows(model, tenant)
        used = own.total(second, _RETRIES)
        is_beyond = used >= int(self._share * own.total(second, _REQUESTS))
        if is_beyond:
            most = max(FLOOR_OF_ALL, int(self._share * all_tenants.total(second, _REQUESTS)))
            if used >= FLOOR or all_tenants.total(second, _BEYOND) >= most:
                return False
        for window in windows:
            window.add(second, _RETRIES)
            if is_beyond:
                window.add(second, _BEYOND)
        return True

    def _windows(self, model: str, tenant: str) -> tuple[_Window, _Window]:
        own = self._tenants.setdefault((model, tenant), _Window())
        return own, self._models.setdefault(model, _Window())

    def _now(self) -> int:
        second = int(self._clock())
        if second - self._swept >= SECONDS:
            self._swept = second
            self._tenants = {of: one for of, one in self._tenants.items() if not one.is_over(second)}
            self._models = {of: one for of, one in self._models.items() if not one.is_over(second)}
        return second
