"""The places a waiting request may go to: as they were when it began to wait, and as the fleet has changed since."""

from collections.abc import Sequence
from typing import Any

from headrace.api.exchange import Exchange
from headrace.api.fit import Place
from headrace.api.gateway import Gateway
from headrace.api.places import MOST_ROOMS, places
from routing.catalog import Replica
from tenants.meters.holds import Taken
from tenants.meters.meter import Meter


class Offer:
    """What one request is offered. A replica that drains, fails or goes is no place any more; one that comes is."""

    def __init__(
        self, gateway: Gateway, exchange: Exchange, found: list[Place], *, tried: Sequence[Replica] = ()
    ) -> None:
        self._gateway, self._exchange, self._tried = gateway, exchange, tried
        self._fleet: Any = None
        self._places: dict[str, tuple[tuple[Meter, int], Place]] = {}
        self._add(found)

    def look(self, found_out: dict[str, Any]) -> bytes:
        """The places from now on, as the queue has them; b"" while nothing of the fleet has changed.

        found_out: the fleets of this round, by model; each is looked at once.
        """
        exchange, model = self._exchange, self._exchange.route.model
        if model not in found_out:
            found_out[model] = _fleet(self._gateway, model)
        before, self._fleet = self._fleet, found_out[model]
        route = self._gateway.snapshot.catalog.routes.get(model)
        if before == self._fleet or route is None:
            return b""
        found = places(
            self._gateway,
            exchange.principal,
            exchange.chat,
            route,
            exchange.choice.want,
            refusals=[],
            tried=self._tried,
            first=exchange.target,
        )
        # Of a target that has come since nobody knows its price at the time of admission.
        rooms = self._add(
            [(choice, fit) for choice, fit in found if choice.target.name in exchange.quotes][:MOST_ROOMS]
        )
        return Taken([], {}, rooms=rooms).rooms_as_json()

    def at(self, key: str) -> tuple[tuple[Meter, int], Place]:
        """The room of that key, with what is taken of it, and the place it is in."""
        return self._places[key]

    def _add(self, found: list[Place]) -> list[tuple[Meter, int]]:
        rooms = self._gateway.placing.rooms(choice for choice, _ in found)
        self._places |= {room[0].key: (room, place) for room, place in zip(rooms, found, strict=True)}
        return rooms


def _fleet(gateway: Gateway, model: str) -> Any:
    """All that decides which places there are: equal while nothing has changed."""
    route = gateway.snapshot.catalog.routes.get(model)
    if route is None:
        return None
    replicas = [replica for target in route.targets for replica in target.replicas]
    states = [(*gateway.placing.selection.standing(r.name), gateway.breakers.wait(r.key) > 0) for r in replicas]
    return route.targets, states
