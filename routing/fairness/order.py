"""The order of the fair queue, in plain Python: what simulations run and what the Lua of the service is tested against.

Classes are strict, but each lower one that waits is owed SHARE of the service that passes it by and goes first once it
is owed what its next request costs: then no CEILING holds it back, and if it has waited long, newcomers of higher
classes leave its best replica to it. Within a class the tenant with the least service so far is next (virtual token
counters: Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024); a tenant that comes back is lifted to
the least served of those who wait. Service is counted in weighted tokens: `cost`.
"""

import math
from collections import deque
from dataclasses import dataclass, field

CLASSES = ("interactive", "standard", "batch")
SHARE = 0.05
# How full a class may make a replica: what is above is an open door for those before it.
CEILING = {"interactive": 1.0, "standard": 0.95, "batch": 0.85}
OUTPUT_WEIGHT = 2.0


def cost(input_tokens: int, output_tokens: int, weight: float = 1.0) -> float:
    """Virtual tokens: an output token costs a step of decoding, an input token its part of a prefill.

    weight: the tenant's share against others'; twice the weight is twice the service while both wait.
    """
    return (input_tokens + OUTPUT_WEIGHT * output_tokens) / weight


@dataclass
class _Class:
    waiting: dict[str, deque[str]] = field(default_factory=dict)  # by tenant, in order of arrival
    service: dict[str, float] = field(default_factory=dict)
    floor: float = 0.0  # where the last who waited stood
    owed: float = 0.0

    def least_served(self) -> str | None:
        return min(self.waiting, key=lambda tenant: (self.service[tenant], tenant), default=None)


class FairOrder:
    """Whose turn it is. `join` and `leave` as requests come and go, `turns` and `granted` as room comes free."""

    def __init__(self) -> None:
        self._classes = {name: _Class() for name in CLASSES}
        self._waiters: dict[str, tuple[str, str, float]] = {}
        self._keeps_from: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._waiters)

    def join(self, request_id: str, *, tenant: str, priority: str, cost: float, keeps_from: float = math.inf) -> None:
        """A request begins to wait. cost: its virtual tokens at its worst case. keeps_from: when it has waited so long
        that newcomers leave it room."""
        self._keeps_from[request_id] = keeps_from
        kind = self._classes[priority]
        if tenant not in kind.waiting:
            least = kind.least_served()
            floor = kind.floor if least is None else kind.service[least]
            kind.service[tenant] = max(kind.service.get(tenant, 0.0), floor)
            kind.waiting[tenant] = deque()
        kind.waiting[tenant].append(request_id)
        self._waiters[request_id] = (tenant, priority, cost)

    def leave(self, request_id: str) -> None:
        """It waits no more, for whatever reason. May be repeated."""
        if (waiter := self._waiters.pop(request_id, None)) is None:
            return
        del self._keeps_from[request_id]
        tenant, priority, _ = waiter
        kind = self._classes[priority]
        kind.waiting[tenant].remove(request_id)
        if not kind.waiting[tenant]:
            del kind.waiting[tenant]
            if not kind.waiting:
                kind.floor, kind.owed = kind.service[tenant], 0.0

    def turns(self) -> list[str]:
        """Who may go now, first come those whose class is owed it; whoever fits first goes."""
        heads = [(kind, kind.waiting[tenant][0]) for kind in self._classes.values() if (tenant := kind.least_served())]
        if not heads:
            return []
        owed = [head for kind, head in heads[1:] if kind.owed >= self._waiters[head][2]]
        return [*owed, heads[0][1]]

    def is_owed(self, request_id: str) -> bool:
        """Whether its class, below the highest that waits, is owed what it costs."""
        _, priority, tokens = self._waiters[request_id]
        is_below = any(self._classes[name].waiting for name in CLASSES[: CLASSES.index(priority)])
        return is_below and self._classes[priority].owed >= tokens

    def keeps_room(self, priority: str, now: float) -> str | None:
        """The request of a lower class whose best replica newcomers of this class leave alone."""
        for name in CLASSES[CLASSES.index(priority) + 1 :]:
            kind = self._classes[name]
            if (tenant := kind.least_served()) is not None:
                head = kind.waiting[tenant][0]
                if self._keeps_from[head] <= now and kind.owed >= self._waiters[head][2]:
                    return head
        return None

    def granted(self, request_id: str) -> None:
        """It was given room: its cost counts as service, and a share of it is owed to the lower classes that wait."""
        tenant, priority, tokens = self._waiters[request_id]
        self.leave(request_id)
        self.served(tenant, priority, tokens)
        kind = self._classes[priority]
        kind.owed = max(0.0, kind.owed - tokens)
        for name in CLASSES[CLASSES.index(priority) + 1 :]:
            if self._classes[name].waiting:
                self._classes[name].owed += SHARE * tokens

    def served(self, tenant: str, priority: str, tokens: float) -> None:
        """Count service; a negative amount sets right what was counted at a worst case that did not come."""
        service = self._classes[priority].service
        service[tenant] = service.get(tenant, 0.0) + tokens
