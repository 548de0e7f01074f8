"""A Redis client of the test's own loop, and collectors that end with the test."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
import redis.asyncio
from django.conf import settings

from engines.load.collector import Collector

Start = Callable[[], "asyncio.Task[None]"]


@pytest.fixture
async def valkey() -> AsyncIterator["redis.asyncio.Redis"]:
    async with redis.asyncio.Redis.from_url(settings.REDIS_URL, socket_timeout=5) as client:
        yield client


@pytest.fixture
async def collect(valkey: "redis.asyncio.Redis") -> AsyncIterator[Start]:
    """Start a collector; as often as wanted."""
    tasks: list[asyncio.Task[None]] = []

    def start() -> "asyncio.Task[None]":
        tasks.append(asyncio.create_task(Collector(valkey).run()))
        return tasks[-1]

    yield start
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
