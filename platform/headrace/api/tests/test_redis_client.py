"""A cancelled request's call to Redis ends with it, wherever it is."""

import asyncio

from headrace.api.redis_client import connect
from headrace.testing.stores import Services


async def test_it_is_cancelled_at_every_step_of_a_command(services: Services) -> None:
    client = connect(services.redis_url, 2)
    await client.set("x", 1)

    async def ask() -> None:
        await client.get("x")

    cancelled = 0
    for steps in range(40):
        task = asyncio.create_task(ask())
        for _ in range(steps):
            await asyncio.sleep(0)
        if task.cancel():  # else it had ended
            await asyncio.wait({task})
            assert task.cancelled(), f"after {steps} steps it went on"
            cancelled += 1
    assert cancelled > 3
    assert await client.get("x") == b"1"
    await client.aclose()
