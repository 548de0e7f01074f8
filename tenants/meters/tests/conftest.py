from collections.abc import AsyncIterator, Iterator

import pytest
import redis
import redis.asyncio
from django.conf import settings


@pytest.fixture
async def client() -> AsyncIterator["redis.asyncio.Redis"]:
    """For fifty calls at once."""
    pool = redis.asyncio.BlockingConnectionPool.from_url(settings.REDIS_URL, max_connections=50, timeout=10)
    client = redis.asyncio.Redis.from_pool(pool)
    yield client
    await client.aclose()


@pytest.fixture
def valkey() -> Iterator["redis.Redis"]:
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        yield client
