"""The order of the fair queue, in plain Python: what simulations run and what the Lua of the service is tested against.

Classes are strict, but each lower one that waits is owed SHARE of the service that passes it by and goes first once it
is owed what its next request costs: then no CEILING holds it back, and if it has waited long, newcomers of higher
classes leave its best replica to it. Within a class the tenant with the least service so far is next, and within a
tenant the project (virtual token counters: Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024); one
that comes back is lifted to the least served of those who wait. Service is counted in weighted tokens: `cost`.
"""

import math
from collections import defaultdict, deque
from dataclasses import dataclass, field

CLASSES = ("interactive", "standard", "batch")
SHARE = 0.05
# How full a class may make a replica, or all of its pool together: what is above is an open door for those before it.
CEILING = {"interactive": 1.0, "standard": 0.95, "batch": 0.85}
OUTPUT_WEIGHT = 2.0


def cost(input_tokens: int, output_tokens: int, weight: float = 1.0) -> float:
    """Virtual tokens: an output token costs a step of decoding, an input token its part of a prefill.

    weight: the tenant's share against others'; twice the weight is twice the service while both wait.
    """
    return (input_tokens + OUTPUT_WEIGHT * output_tokens) / weight


@dataclass
class _Shares:
    """Who shares one service: the tenants of a class, or the projects of a tenant."""

    waiting: dict[str, deque[str]] = field(default_factory=dict)  # in order of arrival
    service: dict[str, float] = field(default_factory=dict)
    floor: float = 0.0  # where the last who waited stood

    def least_served(self) -> str | None:
        return min(self.waiting, key=lambda name: (self.service[name], name), default=None)

    def join(self, name: str, request_id: str) -> None:
        if name not in self.waiting:
            least = self.least_served()
            floor = self.floor if least is None else self.service[least]
            self.service[name] = max(self.service.get(name, 0.0), floor)
            self.waiting[name] = deque()
        self.waiting[name].append(request_id)

    def leave(self, name: str, request_id: str) -> None:
        self.waiting[name].remove(request_id)
        if not self.waiting[name]:
            del self.waiting[name]
            if not self.waiting:
                self.floor = self.service[name]

    def serve(self, name: str, tokens: float) -> None:
        self.service[name] = self.service.get(name, 0.0) + tokens


@dataclass
class _Class:
    tenants: _Shares = field(default_factory=_Shares)
    projects: dict[str, _Shares] = field(default_factory=lambda: defaultdict(_Shares))  # by tenant
    owed: float = 0.0

    def head(self) -> str | None:
        """The next request: of the least served tenant's least served project the first."""
        if (tenant := self.tenants.least_served()) is None:
            return None
        projects = self.projects[tenant]
        project = projects.least_served()
        assert project is not None
        return projects.waiting[project][0]


@dataclass(frozen=True)
class _Waiter:
    tenant: str
    priority: str
    cost: float
    project: str
    project_weight: float
    keeps_from: float


class FairOrder:
    """Whose turn it is. `join` and `leave` as requests come and go, `turns` and `granted` as room comes free."""

    def __init__(self) -> None:
        self._classes = {name: _Class() for name in CLASSES}
        self._waiters: dict[str, _Waiter] = {}

    def __len__(self) -> int:
        return len(self._waiters)

    def join(
        self,
        request_id: str,
        *,
        tenant: str,
        priority: str,
        cost: float,
        keeps_from: float = math.inf,
        project: str = "",
        project_weight: float = 1.0,
    ) -> None:
        """A request begins to wait. cost: its virtual tokens at its worst case. keeps_from: when it has waited so long
        that newcomers leave it room. project_weight: the project's share against the tenant's others."""
        kind = self._classes[priority]
        kind.tenants.join(tenant, request_id)
        kind.projects[tenant].join(project, request_id)
        self._waiters[request_id] = _Waiter(tenant, priority, cost, project, project_weight, keeps_from)

    def leave(self, request_id: str) -> None:
        """It waits no more, for whatever reason. May be repeated."""
        if (waiter := self._waiters.pop(request_id, None)) is None:
            return
        kind = self._classes[waiter.priority]
        kind.projects[waiter.tenant].leave(waiter.project, request_id)
        kind.tenants.leave(waiter.tenant, request_id)
        if not kind.tenants.waiting:
            kind.owed = 0.0

    def turns(self) -> list[str]:
        """Who may go now, first come those whose class is owed it; whoever fits first goes."""
        heads = [(kind, head) for kind in self._classes.values() if (head := kind.head())]
        if not heads:
            return []
        owed = [head for kind, head in heads[1:] if kind.owed >= self._waiters[head].cost]
        return [*owed, heads[0][1]]

    def is_owed(self, request_id: str) -> bool:
        """Whether its class, below the highest that waits, is owed what it costs."""
        waiter = self._waiters[request_id]
        above = CLASSES[: CLASSES.index(waiter.priority)]
        is_below = any(self._classes[name].tenants.waiting for name in above)
        return is_below and self._classes[waiter.priority].owed >= waiter.cost

    def keeps_room(self, priority: str, now: float) -> str | None:
        """The request of a lower class whose best replica newcomers of this class leave alone."""
        for name in CLASSES[CLASSES.index(priority) + 1 :]:
            kind = self._classes[name]
            if (head := kind.head()) is not None:
                waiter = self._waiters[head]
                if waiter.keeps_from <= now and kind.owed >= waiter.cost:
                    return head
        return None

    def granted(self, request_id: str) -> None:
        """It was given room: its cost counts as service, and a share of it is owed to the lower classes that wait."""
        waiter = self._waiters[request_id]
        self.leave(request_id)
        self.served(
            waiter.tenant, waiter.priority, waiter.cost, project=waiter.project, project_weight=waiter.project_weight
        )
        kind = self._classes[waiter.priority]
        kind.owed = max(0.0, kind.owed - waiter.cost)
        for name in CLASSES[CLASSES.index(waiter.priority) + 1 :]:
            if self._classes[name].tenants.waiting:
                self._classes[name].owed += SHARE * waiter.cost

    def served(
        self, tenant: str, priority: str, tokens: float, *, project: str = "", project_weight: float = 1.0
    ) -> None:
        """Count service; a negative amount sets right what was counted at a worst case that did not come."""
        kind = self._classes[priority]
        kind.tenants.serve(tenant, tokens)
        kind.projects[tenant].serve(project, tokens / project_weight)
