"""The data plane's Redis client: cancelled at any step, and after a failover."""

import asyncio

from headrace.gateway.process.redis_client import connect
from headrace_dev.testing.stores import Services


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


async def test_it_finds_the_new_primary_after_a_failover() -> None:
    """Connections to the old one stay, and it answers on them as a replica; whoever connects reaches the new one."""
    is_over = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_old = not is_over.is_set()
        while await reader.read(1000):
            is_replica = is_old and is_over.is_set()
            writer.write(b"-READONLY You can't write against a read only replica.\r\n" if is_replica else b"+OK\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    client = connect(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}", 2)
    assert await client.set("x", 1)
    is_over.set()
    assert await client.set("x", 2)
    await client.aclose()
    server.close()
