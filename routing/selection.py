"""Which replica a request goes to: of the route's first target that has any, the one least busy with our requests."""

from collections import Counter

from routing.catalog import Replica, Route, Target


class InFlight:
    """How many requests of this process each replica is busy with."""

    def __init__(self) -> None:
        self._running: Counter[str] = Counter()
        self._turn = 0

    def choose(self, route: Route, *, besides: frozenset[str] = frozenset()) -> tuple[Target, Replica] | None:
        """The least busy replica, ties in turn; None when no target has one. `besides`: those tried already."""
        for target in route.targets:
            replicas = [replica for replica in target.replicas if replica.name not in besides]
            if replicas:
                self._turn += 1
                start = self._turn % len(replicas)
                turned = replicas[start:] + replicas[:start]
                return target, min(turned, key=lambda replica: self._running[replica.name])
        return None

    def enter(self, replica: Replica) -> None:
        self._running[replica.name] += 1

    def leave(self, replica: Replica) -> None:
        self._running[replica.name] -= 1
        if self._running[replica.name] <= 0:
            del self._running[replica.name]
