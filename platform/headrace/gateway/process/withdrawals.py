"""Admissions that Redis never answered. Their requests were refused; what Redis may have taken for them comes back.

The answer may be lost, or the question may lie in the buffers of a frozen Redis and be decided when it wakes. Either
way the hold would keep a concurrency slot and tokens until its lease ends; so, once Redis answers again, it is undone.
"""

import asyncio
from collections import deque

import redis
import redis.asyncio

from tenants.meters import holds

DELIVER_SECONDS = 0.5
_BATCH = 500
_MOST = 100_000  # beyond it, the oldest are left to their leases


class Withdrawals:
    """The doubtful admissions of this process."""

    def __init__(self, client: "redis.asyncio.Redis") -> None:
        self._redis = client
        self._waiting: deque[str] = deque(maxlen=_MOST)

    def add(self, request_id: str) -> None:
        self._waiting.append(request_id)

    async def deliver_for_ever(self) -> None:
        while True:
            await asyncio.sleep(DELIVER_SECONDS)
            try:
                await self.deliver()
            except redis.RedisError:
                continue  # it is still away

    async def deliver(self) -> None:
        """Undo all that wait. Raises redis.RedisError; what was not undone waits on."""
        while self._waiting:
            batch = [self._waiting[at] for at in range(min(_BATCH, len(self._waiting)))]
            await holds.withdraw(self._redis, batch)
            for _ in batch:
                self._waiting.popleft()
