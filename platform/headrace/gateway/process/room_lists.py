"""The rooms that requests waiting in this process may take, as lists in Redis: one for each target of a model.

Whoever waits names its lists and not the rooms, so that what becomes of the fleet is written once, however many wait
(tenants/meters/lua/rooms.lua). Lists are a process's own, as its breakers are.
"""

import secrets
from collections.abc import Iterable
from typing import Any

import msgspec

from headrace.gateway.process.snapshot import Snapshot
from headrace_core import store_keys
from routing.breaker import Breakers
from routing.catalog import Replica, Target
from routing.selection import Selection
from tenants.meters.meter import room_of

_encode = msgspec.json.encode


class Lists(msgspec.Struct, frozen=True):
    """A model's lists by name, as JSON.

    shape: what decides, beside the request, which of its targets it may go to: equal while that has not changed.
    """

    shape: Any
    lists: dict[str, bytes]


class RoomLists:
    """Composed once per process."""

    def __init__(self, snapshot: Snapshot, selection: Selection, breakers: Breakers) -> None:
        self._snapshot, self._selection, self._breakers = snapshot, selection, breakers
        self._owner = secrets.token_hex(8)

    def names(self, model: str, targets: Iterable[str], *, is_last_resort: bool) -> list[tuple[str, str]]:
        """Of each target its name and that of its list: of its usable replicas, or of those of last resort."""
        end = ":last" if is_last_resort else ""
        return [
            (target, f"{store_keys.ROOM_LISTS}{self._owner}:{model}:{target}{end}") for target in dict.fromkeys(targets)
        ]

    def of(self, model: str) -> Lists:
        """The lists as the fleet is now; none of a model that is served no more."""
        route = self._snapshot.catalog.routes.get(model)
        if route is None:
            return Lists(None, {})
        lists, shape = {}, []
        for target in route.targets:
            usable, last = self._standing(target)
            ((_, name),) = self.names(model, [target.name], is_last_resort=False)
            ((_, last_name),) = self.names(model, [target.name], is_last_resort=True)
            lists[name], lists[last_name] = self._json(usable), self._json(last)
            terms = msgspec.structs.replace(target, replicas=())
            shape.append((terms, bool(target.replicas), bool(usable), bool(last)))
        return Lists(tuple(shape), lists)

    def is_usable(self, replica: Replica) -> bool:
        """Whether it may be asked, and not only as a last resort."""
        return self._selection.standing(replica.name)[0]

    def has_usable(self, targets: Iterable[Target]) -> bool:
        """Whether a replica of these targets may be asked, and not only as a last resort."""
        return any(self._standing(target)[0] for target in targets)

    def _standing(self, target: Target) -> tuple[list[Replica], list[Replica]]:
        """Its usable replicas, and those of last resort, without those left alone."""
        usable, last = [], []
        for replica in target.replicas:
            if self._breakers.wait(replica.key) > 0:
                continue
            is_usable, is_last_resort, _ = self._selection.standing(replica.name)
            if is_usable:
                usable.append(replica)
            elif is_last_resort:
                last.append(replica)
        return usable, last

    def _json(self, replicas: list[Replica]) -> bytes:
        rooms = (room_of(replica.name, self._selection.capacity(replica.name)) for replica in replicas)
        return _encode([[room.key, str(room.limit)] for room in rooms])
