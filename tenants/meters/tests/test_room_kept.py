"""A large request of a lower class finds room although those above it never wait: no more than its class is owed."""

import redis.asyncio

from tenants.meters import holds
from tenants.meters.holds import Taken
from tenants.meters.meter import room_of
from tenants.meters.queueing import Waiter

NEVER = 3_600_000


async def admit(client: "redis.asyncio.Redis", name: str, need: int, priority: str, *, patience: int = NEVER) -> bool:
    """Whether it found room at once."""
    waiter = Waiter(priority, priority, 10.0 * need, "grants", 1.0, patience, 1000)
    what = Taken([], {}, rooms=[(room_of("p/a", 1000), need)])
    await holds.admit(client, request_id=name, lease_ms=60_000, taken=what, record=b"{}", waiter=waiter)
    return what.room is not None


async def waited(client: "redis.asyncio.Redis", patience: int) -> tuple[int | None, int]:
    """People come and go, nine or ten at a time, and a batch request of more than half the room waits. After how many
    of them it was granted room, None: never; and how many had to wait themselves."""
    running = [f"p{number}" for number in range(9)]
    for name in running:
        assert await admit(client, name, 100, "interactive")
    assert not await admit(client, "large", 600, "batch", patience=patience)
    after, waiting = None, 0
    for number in range(150):
        name = f"q{number}"
        waiting += not await admit(client, name, 100, "interactive")
        running.append(name)
        held = [one for one in running if await client.hget(f"hr:hold:{one}", "granted")]
        await holds.settle(client, request_id=held[0], used={}, event=b"{}")
        running.remove(held[0])
        if after is None and await client.hget("hr:hold:large", "granted"):
            after = number
            await holds.settle(client, request_id="large", used={}, event=b"{}")
    return after, waiting


async def test_it_waits_for_ever_for_room_that_nobody_leaves_it(client: "redis.asyncio.Redis") -> None:
    assert await waited(client, NEVER) == (None, 0)


async def test_it_is_left_room_once_it_waited_long_and_is_owed_it(client: "redis.asyncio.Redis") -> None:
    after, waiting = await waited(client, 0)
    assert after is not None
    assert 115 < after < 135  # a twentieth of the service of those who pass it
    assert waiting < 20
