"""Redis's memory, watched from outside the path of requests: new ones are refused before there is none left.

What remains above the mark is for requests that run, whose settlements must be taken, and for the worker's tasks, which
free memory again. Redis itself never evicts (`maxmemory-policy noeviction`): at its limit it refuses to write.
"""

import asyncio
import logging

import redis
import redis.asyncio

log = logging.getLogger("headrace.redis")

WATCH_SECONDS = 0.5
# Of `maxmemory`.
MARK = 0.9


class StoreMemory:
    """`is_short`: no new request is to be admitted. Without `maxmemory` there is always room."""

    def __init__(self, client: "redis.asyncio.Redis") -> None:
        self._redis = client
        self.is_short = False

    async def watch(self) -> None:
        """For ever."""
        while True:
            try:
                memory = await self._redis.info("memory")
                limit = int(memory.get("maxmemory", 0))
                is_short = bool(limit) and int(memory["used_memory"]) >= MARK * limit
                if is_short and not self.is_short:
                    log.error("Redis has used %d of %d bytes: no new requests", memory["used_memory"], limit)
                self.is_short = is_short
            except redis.RedisError:
                pass  # away: each request says so itself
            await asyncio.sleep(WATCH_SECONDS)
