"""The verbs of a fair queue (lua/queue.lua) for whoever waits in it. Joining it is a part of `holds.admit`."""

import msgspec
import redis.asyncio

from tenants.meters.scripts import QUIT, TEND, Argument


class Waiter(msgspec.Struct, frozen=True):
    """How a request waits: its tenant and class, the tenant's weight, its cost in virtual tokens, where it listens.

    most: how many of its class and above may wait in the queue, a quarter of them of one tenant; 0: it may not itself,
    and passes none of those who do. patience: ms after which newcomers of higher classes leave it room, if it is owed
    that. project_weight: the project's share of the tenant's. need: tokens that it takes of a room other than those it
    was offered. lists: of each target it may go to its name and that of its list of rooms (lua/rooms.lua). barred: keys
    of rooms that it may not take.
    """

    tenant: str = msgspec.field(name="t")
    priority: str = msgspec.field(name="c")
    cost: float = msgspec.field(name="v")
    channel: str = msgspec.field(name="ch")
    weight: float = msgspec.field(name="w")
    patience: int = msgspec.field(name="a")
    most: int
    project: str = msgspec.field(name="r", default="")
    project_weight: float = msgspec.field(name="rw", default=1.0)
    need: str = msgspec.field(name="d", default="0")
    lists: list[tuple[str, str]] = msgspec.field(name="g", default_factory=list)
    barred: list[str] = msgspec.field(name="x", default_factory=list)


class Grant(msgspec.Struct, array_like=True):
    """What the channel says: a request was given room, or EVICTED; without an id, that there is more to give.

    key: the room's; without an id, the name of the pool.
    """

    request_id: str
    key: str


GONE = "gone"
# It made room in the queue for another's request, and waits no more.
EVICTED = "evicted"


async def tend(
    client: "redis.asyncio.Redis", pool: str, waiters: dict[str, bytes], *, lists: dict[str, bytes]
) -> dict[str, str]:
    """Give free room to those whose turn it is. Of `waiters` the room (its key) of each that has one; GONE of each
    whose hold Redis has lost; EVICTED of each that made room for another.

    waiters: by request id the names of the lists of rooms it may take from now on, as JSON; b"": as before.
    lists: by name the rooms of each, JSON [[key, limit], ...].
    """
    arguments: list[Argument] = [pool, len(lists)]
    for name, rooms in lists.items():
        arguments += [name, rooms]
    for request_id, names in waiters.items():
        arguments += [request_id, names]
    answer = await TEND.call(client, [], arguments)
    pairs = zip(waiters, answer, strict=True)
    return {request_id: key.decode() for request_id, key in pairs if key}


async def leave(client: "redis.asyncio.Redis", pool: str, request_id: str) -> str | None:
    """Wait no longer; the key of the room, if one was granted meanwhile. May be repeated."""
    key: bytes = await QUIT.call(client, [], [pool, request_id])
    return key.decode() or None
