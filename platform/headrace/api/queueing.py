"""Waiting for room: the requests of this process that are in a fair queue, and the news that they were given room.

Grants come over a Redis channel of this process. News may be lost: every half second the queues in which somebody of
ours waits are tended, which also gives away room that came without anybody's leaving, and tells what was granted.
"""

import asyncio
import logging
import secrets
from collections import defaultdict

import msgspec
import redis
import redis.asyncio

from tenants.meters import waiting
from tenants.meters.waiting import Grant

log = logging.getLogger("headrace.queueing")

TEND_SECONDS = 0.5
_grant = msgspec.json.Decoder(Grant)


class Queueing:
    """Composed once per process. `listen` and `tend_for_ever` are its loops."""

    def __init__(self, url: str, client: "redis.asyncio.Redis") -> None:
        self._url, self._client = url, client
        self.channel = f"hr:grants:{secrets.token_hex(8)}"
        self._waiting: dict[str, tuple[str, asyncio.Future[str]]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def expect(self, request_id: str, pool: str) -> None:
        """`request_id` is about to wait in the queue of `pool`."""
        self._waiting[request_id] = (pool, asyncio.get_running_loop().create_future())

    def forget(self, request_id: str) -> None:
        """It waits no more. May be repeated."""
        self._waiting.pop(request_id, None)

    async def room(self, request_id: str, *, seconds: float) -> str | None:
        """The key of the room that is granted to it; None if none is within `seconds`: it has then left the queue.

        Raises redis.RedisError where leaving cannot be told.
        """
        pool, news = self._waiting[request_id]
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(news)
        except TimeoutError:
            return await waiting.leave(self._client, pool, request_id)
        finally:
            self.forget(request_id)

    async def listen(self) -> None:
        """Hear of grants, for ever; connects again as often as needed."""
        while True:
            try:
                await self._hear()
            except (redis.RedisError, OSError) as error:
                log.warning("grants are polled for, not heard of: %s", error)
                await asyncio.sleep(TEND_SECONDS)

    async def _hear(self) -> None:
        client = redis.asyncio.Redis.from_url(self._url, socket_connect_timeout=1, protocol=2)
        async with client, client.pubsub() as subscription:
            await subscription.subscribe(self.channel)
            async for message in subscription.listen():
                if message["type"] == "message":
                    grant = _grant.decode(message["data"])
                    self._tell(grant.request_id, grant.key)

    async def tend_for_ever(self) -> None:
        """See to the queues in which somebody of ours waits."""
        while True:
            await asyncio.sleep(TEND_SECONDS)
            try:
                await self.tend()
            except redis.RedisError as error:
                log.warning("the queues cannot be tended: %s", error)

    async def tend(self) -> None:
        pools: dict[str, list[str]] = defaultdict(list)
        for request_id, (pool, _) in self._waiting.items():
            pools[pool].append(request_id)
        for pool, request_ids in pools.items():
            for request_id, key in (await waiting.tend(self._client, pool, request_ids)).items():
                self._tell(request_id, key)

    def _tell(self, request_id: str, key: str) -> None:
        _, news = self._waiting.get(request_id, (None, None))
        if news is not None and not news.done():
            news.set_result(key)
