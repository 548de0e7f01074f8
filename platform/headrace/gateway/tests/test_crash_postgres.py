"""The database is away: running processes serve on from memory; one that starts says so, and recovers by itself."""

import asyncio
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest
import redis
from django.db import connections

from headrace.gateway.tests.conftest import QUICK
from headrace_dev.testing.clients import streams
from headrace_dev.testing.invariants import eventually, settled, warnings
from headrace_dev.testing.stores import Services
from headrace_dev.testing.upstream import prompt
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World


@pytest.fixture
def no_database(world: World, quick_webs: dict[str, WebProcess], services: Services) -> Iterator[None]:
    """The database goes once everybody knows the world, and comes back in any case."""
    world.wait_known(*quick_webs.values())
    connections.close_all()
    services.postgres.stop()
    yield
    if not services.postgres.is_running:
        services.postgres.start()
        services.postgres.wait_ready()


@pytest.fixture
def newcomers(no_database: None, tmp_path: Path) -> Iterator[list[WebProcess]]:
    webs = [WebProcess(tmp_path / f"{server}.log", server, **QUICK) for server in ("uvicorn", "daphne")]
    yield webs
    for web, number in zip(webs, (signal.SIGINT, signal.SIGTERM), strict=True):
        began = time.monotonic()
        web.send(number)
        assert web.stop() == 0
        assert time.monotonic() - began < 3, "nothing ran"


def get(web: WebProcess, path: str, world: World) -> httpx.Response | None:
    try:
        return httpx.get(web.url + path, headers=world.headers(), trust_env=False, timeout=5)
    except httpx.TransportError:
        return None  # nobody listens yet


async def test_it_serves_on_and_starts_later(
    quick_webs: dict[str, WebProcess],
    world: World,
    newcomers: list[WebProcess],
    services: Services,
    valkey: "redis.Redis",
) -> None:
    before = {server: len(warnings(web)) for server, web in quick_webs.items()}
    for web in quick_webs.values():
        running = await streams(web.url, world, 3, content=prompt(tokens=20, interval_ms=20))
        assert {await stream.ended() for stream in running} == {"DONE"}
        ready = get(web, "/readyz", world)
        assert ready is not None
        assert ready.status_code == 200
    settled(valkey, world, 6)

    for web in newcomers:
        await asyncio.to_thread(eventually, partial(get, web, "/readyz", world), 60)
        ready, models = get(web, "/readyz", world), get(web, "/v1/models", world)
        assert ready is not None
        assert ready.status_code == 503
        assert models is not None
        assert (models.status_code, models.json()["error"]["code"]) == (503, "starting")
        assert models.headers["retry-after"]
    for server, web in quick_webs.items():
        assert len(warnings(web)) - before[server] < 5, "a line for the outage, not for each try"

    services.postgres.start()
    await asyncio.to_thread(services.postgres.wait_ready)
    for web in newcomers:
        await asyncio.to_thread(web.wait_ready)
        [stream] = await streams(web.url, world, 1, content=prompt(tokens=3))
        assert await stream.ended() == "DONE"
    settled(valkey, world, 8)
