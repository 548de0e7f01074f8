"""The places a waiting request may go to: as they were when it began to wait, and as the fleet has changed since."""

from typing import Any

import msgspec

from headrace.gateway.admission.places import open_targets
from headrace.gateway.errors import ApiError
from headrace.gateway.process.room_lists import Lists
from headrace.gateway.state.request_state import RequestState
from headrace.gateway.web_process import Gateway
from routing.catalog import Replica, Target
from routing.placement import Fit, Place
from tenants.meters.meter import Meter, room_key

_encode = msgspec.json.encode


class Offer:
    """What one request is offered: `found`, the best as it began to wait, and any other replica of its targets. One
    that drains, fails or goes is no place any more; one that comes is.
    """

    def __init__(self, gateway: Gateway, request: RequestState, found: list[Place]) -> None:
        self._gateway, self._request = gateway, request
        self._shape: Any = None
        self._names: list[str] = []
        rooms = gateway.placement.rooms(choice for choice, _ in found)
        self._places = {room[0].key: (room, place) for room, place in zip(rooms, found, strict=True)}

    @property
    def model(self) -> str:
        return self._request.route.model

    def look(self, fleet: Lists) -> bytes:
        """The names of its lists from now on, as the queue has them; b"" while none of its targets has changed."""
        if self._shape is fleet.shape or self._shape == fleet.shape:
            return b""
        self._shape = fleet.shape
        targets = self._targets()
        rooms = self._gateway.rooms
        is_last_resort = not rooms.has_usable(targets)
        names = rooms.names(self.model, (target.name for target in targets), is_last_resort=is_last_resort)
        before, self._names = self._names, [name for _, name in names]
        return b"" if not names or before == self._names else _encode(self._names)

    def _targets(self) -> list[Target]:
        request = self._request
        if (route := self._gateway.snapshot.catalog.routes.get(self.model)) is None:
            return []
        found = open_targets(
            self._gateway, request.principal, request.operation, route, request.choice.want, first=request.target
        )
        # Of a target that has come since nobody knows its price at the time of admission.
        return [target for target, _ in found if target.name in request.quotes]

    def at(self, key: str) -> tuple[tuple[Meter, int], Place]:
        """The room of that key, with what is taken of it, and the place it is in. Raises ApiError where it is gone."""
        return self._places.get(key) or self._elsewhere(key)

    def _elsewhere(self, key: str) -> tuple[tuple[Meter, int], Place]:
        gateway, request, want = self._gateway, self._request, self._request.choice.want
        now = gateway.snapshot.catalog.routes.get(self.model)
        for route in (now, request.route) if now else (request.route,):
            for target in route.targets:
                for replica in target.replicas:
                    if room_key(replica.name) == key:
                        return self._place(target, replica)
        raise ApiError("no_capacity", f"The replica that had room for '{want.facts.key}' is gone.", retry_after=1)

    def _place(self, target: Target, replica: Replica) -> tuple[tuple[Meter, int], Place]:
        gateway, request = self._gateway, self._request
        choice = gateway.placement.selection.choice_of(target, replica, request.choice.want)
        found = open_targets(
            gateway, request.principal, request.operation, request.route, request.choice.want, first=request.target
        )
        fits = {one.name: fit for one, fit in found}
        fit = fits.get(target.name) or Fit(request.prompt_estimate, request.max_tokens)
        return gateway.placement.rooms([choice])[0], (choice, fit)
