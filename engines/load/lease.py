"""Who collects: of any number of collectors, the one that holds the lease `hr:collector` in Redis."""

import secrets
from typing import Any

import redis.asyncio

from engines.load.figures import KEPT_SECONDS, KEY
from headrace_core import store_keys

LEASE_KEY = store_keys.COLLECTOR
LEASE_SECONDS = 3.0

_CLAIM = """
local holder = redis.call('GET', KEYS[1])
local now = redis.call('TIME')
if holder and holder ~= ARGV[1] then return {0, now[1], now[2]} end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {1, now[1], now[2]}
"""
_PUBLISH = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return 1
"""
_RELEASE = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
"""


class Lease:
    """This process's claim. Judged by Redis's clock; what it publishes is written only while it holds."""

    def __init__(self, client: "redis.asyncio.Redis") -> None:
        self._token = secrets.token_hex(8)
        self._claim: Any = client.register_script(_CLAIM)
        self._publish: Any = client.register_script(_PUBLISH)
        self._release: Any = client.register_script(_RELEASE)

    async def claim(self) -> tuple[bool, int]:
        """Take or prolong the lease; whether we hold it, and Redis's time in milliseconds. Raises RedisError."""
        held, seconds, micros = await self._claim(keys=[LEASE_KEY], args=[self._token, int(LEASE_SECONDS * 1000)])
        return bool(held), int(seconds) * 1000 + int(micros) // 1000

    async def publish(self, picture: bytes) -> bool:
        """Replace the picture, if the lease is still ours."""
        milliseconds = int(KEPT_SECONDS * 1000)
        return bool(await self._publish(keys=[LEASE_KEY, KEY], args=[self._token, picture, milliseconds]))

    async def release(self) -> None:
        """Let the next one begin at once."""
        await self._release(keys=[LEASE_KEY], args=[self._token])
