"""The verbs of a fair queue (lua/queue.lua) for whoever waits in it. Joining it is a part of `holds.admit`."""

import msgspec
import redis.asyncio

from tenants.meters.scripts import QUIT, TEND, Argument


class Waiter(msgspec.Struct, frozen=True):
    """How a request waits: its tenant and class, the tenant's weight, its cost in virtual tokens, where it listens.

    most: how many of its class and above may wait in the queue, a quarter of them of one tenant. patience: ms after
    which newcomers of higher classes leave it room, if it is owed that.
    """

    tenant: str = msgspec.field(name="t")
    priority: str = msgspec.field(name="c")
    cost: float = msgspec.field(name="v")
    channel: str = msgspec.field(name="ch")
    weight: float = msgspec.field(name="w")
    patience: int = msgspec.field(name="a")
    most: int


class Grant(msgspec.Struct, array_like=True):
    """What the channel says: a request was given room."""

    request_id: str
    key: str


GONE = "gone"


async def tend(client: "redis.asyncio.Redis", pool: str, waiters: dict[str, bytes]) -> dict[str, str]:
    """Give free room to those whose turn it is. Of `waiters` the room (its key) of each that has one; GONE of each
    whose hold Redis has lost.

    waiters: by request id the places it may go to from now on (`holds.Taken.rooms_as_json`); b"": as before.
    """
    arguments: list[Argument] = [pool]
    for request_id, places in waiters.items():
        arguments += [request_id, places]
    answer = await TEND.call(client, [], arguments)
    pairs = zip(waiters, answer, strict=True)
    return {request_id: key.decode() for request_id, key in pairs if key}


async def leave(client: "redis.asyncio.Redis", pool: str, request_id: str) -> str | None:
    """Wait no longer; the key of the room, if one was granted meanwhile. May be repeated."""
    key: bytes = await QUIT.call(client, [], [pool, request_id])
    return key.decode() or None
