"""Waiting for room: the requests of this process that are in a fair queue, and the news that they were given room.

Grants come over a Redis channel of this process. News may be lost: every half second the queues in which somebody of
ours waits are tended, which also gives away room that came without anybody's leaving, offers other places to those
whose own have changed, and tells what was granted.
"""

import asyncio
import logging
import secrets
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import msgspec
import redis
import redis.asyncio

from tenants.meters import waiting
from tenants.meters.holds import Gone
from tenants.meters.waiting import GONE, Grant

log = logging.getLogger("headrace.queueing")

TEND_SECONDS = 0.5
_grant = msgspec.json.Decoder(Grant)
# What a waiter may go to from now on, as JSON; b"": as before. It is given what others of this round found out.
Look = Callable[[dict[str, Any]], bytes]
# Waiters may be many: between so many that look for other places, streams get their turn.
_AT_A_TIME = 20


class _Waiter:
    def __init__(self, pool: str) -> None:
        self.pool = pool
        self.news: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.look: Look | None = None  # None: Redis may not know of it yet


class Queueing:
    """Composed once per process. `listen` and `tend_for_ever` are its loops."""

    def __init__(self, url: str, client: "redis.asyncio.Redis") -> None:
        self._url, self._client = url, client
        self.channel = f"hr:grants:{secrets.token_hex(8)}"
        self._waiting: dict[str, _Waiter] = {}
        self._is_hearing = self._is_tending = True

    def __len__(self) -> int:
        return len(self._waiting)

    def expect(self, request_id: str, pool: str) -> None:
        """`request_id` is about to wait in the queue of `pool`."""
        self._waiting[request_id] = _Waiter(pool)

    def forget(self, request_id: str) -> None:
        """It waits no more. May be repeated."""
        self._waiting.pop(request_id, None)

    async def room(self, request_id: str, *, seconds: float, look: Look) -> str | None:
        """The key of the room that is granted to it; None if none is within `seconds`: it has then left the queue.

        Raises Gone where Redis has lost it, redis.RedisError where leaving cannot be told.
        """
        waiter = self._waiting[request_id]
        waiter.look = look
        try:
            async with asyncio.timeout(seconds):
                key = await asyncio.shield(waiter.news)
        except TimeoutError:
            return await waiting.leave(self._client, waiter.pool, request_id)
        finally:
            self.forget(request_id)
        if key == GONE:
            raise Gone
        return key

    async def listen(self) -> None:
        """Hear of grants, for ever; connects again as often as needed."""
        while True:
            try:
                await self._hear()
            except (redis.RedisError, OSError) as error:
                if self._is_hearing:  # once an outage, not once a try
                    log.warning("grants are polled for, not heard of: %s", type(error).__name__)
                self._is_hearing = False
                await asyncio.sleep(TEND_SECONDS)

    async def _hear(self) -> None:
        client = redis.asyncio.Redis.from_url(self._url, socket_connect_timeout=1, protocol=2)
        async with client, client.pubsub() as subscription:
            await subscription.subscribe(self.channel)
            async for message in subscription.listen():
                self._is_hearing = True
                if message["type"] == "message":
                    grant = _grant.decode(message["data"])
                    self._tell(grant.request_id, grant.key)

    async def tend_for_ever(self) -> None:
        """See to the queues in which somebody of ours waits."""
        while True:
            await asyncio.sleep(TEND_SECONDS)
            try:
                await self.tend()
                self._is_tending = True
            except redis.RedisError as error:
                if self._is_tending:
                    log.warning("the queues cannot be tended: %s", type(error).__name__)
                self._is_tending = False

    async def tend(self) -> None:
        pools: dict[str, dict[str, bytes]] = defaultdict(dict)
        found_out: dict[str, Any] = {}
        for number, (request_id, waiter) in enumerate(list(self._waiting.items())):
            if waiter.look is not None and not waiter.news.done():
                places = pools[waiter.pool][request_id] = waiter.look(found_out)
                if places and not number % _AT_A_TIME:
                    await asyncio.sleep(0)
        for pool, waiters in pools.items():
            for request_id, key in (await waiting.tend(self._client, pool, waiters)).items():
                self._tell(request_id, key)

    def _tell(self, request_id: str, key: str) -> None:
        waiter = self._waiting.get(request_id)
        if waiter is not None and not waiter.news.done():
            waiter.news.set_result(key)
