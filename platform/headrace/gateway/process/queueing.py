"""Waiting for room: the requests of this process that are in a fair queue, and the news that they were given room.

Grants come over a Redis channel of this process. News may be lost: every half second the queues in which somebody of
ours waits are tended, which also gives away room that came without anybody's leaving, writes which rooms there are, and
tells what was granted.
"""

import asyncio
import logging
import secrets
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

import msgspec
import redis
import redis.asyncio

from headrace.gateway.process.redis_client import listener
from headrace.gateway.process.room_lists import Lists
from headrace_core import store_keys
from tenants.meters import queueing
from tenants.meters.holds import Gone
from tenants.meters.queueing import GONE, Grant

log = logging.getLogger("headrace.queueing")

TEND_SECONDS = 0.5
_grant = msgspec.json.Decoder(Grant)
# Waiters may be many: between so many that look for other targets, streams get their turn.
_AT_A_TIME = 20
# Of so many it is asked in one call what became of them, and of so many in a round; of all where news may be missing.
_ASKED_AT_ONCE = 250
_ASKED_A_ROUND = 1000


class Offered(Protocol):
    """What a waiter is offered. model: whose fleet that is."""

    @property
    def model(self) -> str: ...

    def look(self, fleet: Lists) -> bytes:
        """The names of its lists of rooms from now on, as JSON; b"": as before."""
        ...


class _Waiter:
    def __init__(self, pool: str) -> None:
        self.pool = pool
        self.news: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.offer: Offered | None = None  # None: Redis may not know of it yet


class Queueing:
    """Composed once per process. `listen` and `tend_for_ever` are its loops.

    fleet: the lists of rooms of a model, as they are now.
    """

    def __init__(self, url: str, client: "redis.asyncio.Redis", fleet: Callable[[str], Lists]) -> None:
        self._url, self._client, self._fleet = url, client, fleet
        self.channel = store_keys.GRANTS + secrets.token_hex(8)
        self._waiting: dict[str, _Waiter] = {}
        self._is_hearing = self._is_tending = True
        self._missed = False  # whether news may be missing
        self._urged: set[str] = set()  # pools that have more to give than one call of a script gives
        self._urge = asyncio.Event()
        self._round = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def expect(self, request_id: str, pool: str) -> None:
        """`request_id` is about to wait in the queue of `pool`."""
        self._waiting[request_id] = _Waiter(pool)

    def forget(self, request_id: str) -> None:
        """It waits no more. May be repeated."""
        self._waiting.pop(request_id, None)

    async def room(self, request_id: str, *, seconds: float, offer: Offered) -> str | None:
        """The key of the room that is granted to it; None if none is within `seconds`: it has then left the queue.
        EVICTED where it had to leave it.

        Raises Gone where Redis has lost it, redis.RedisError where leaving cannot be told.
        """
        waiter = self._waiting[request_id]
        waiter.offer = offer
        try:
            async with asyncio.timeout(seconds):
                key = await asyncio.shield(waiter.news)
        except TimeoutError:
            return await queueing.leave(self._client, waiter.pool, request_id)
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
                self._is_hearing, self._missed = False, True
                await asyncio.sleep(TEND_SECONDS)

    async def _hear(self) -> None:
        client = listener(self._url, 1)
        async with client, client.pubsub() as subscription:
            await subscription.subscribe(self.channel)
            async for message in subscription.listen():
                self._is_hearing = True
                if message["type"] == "message":
                    grant = _grant.decode(message["data"])
                    if grant.request_id:
                        self._tell(grant.request_id, grant.key)
                    else:
                        self._urged.add(grant.key)
                        self._urge.set()

    async def tend_for_ever(self) -> None:
        """See to the queues in which somebody of ours waits."""
        due = time.monotonic() + TEND_SECONDS
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, due - time.monotonic())):
                    await self._urge.wait()
            self._urge.clear()
            urged, self._urged = self._urged, set()
            try:
                if time.monotonic() >= due:
                    due = time.monotonic() + TEND_SECONDS
                    await self.tend()
                else:
                    for pool in urged:
                        await queueing.tend(self._client, pool, {}, lists={})
                self._is_tending = True
            except redis.RedisError as error:
                if self._is_tending:
                    log.warning("the queues cannot be tended: %s", type(error).__name__)
                self._is_tending, self._missed = False, True

    async def tend(self) -> None:
        """Once: each queue, for all of ours that wait in it; of some of them it is asked what became of them."""
        fleets: dict[str, Lists] = {}
        models: dict[str, set[str]] = defaultdict(set)
        changed: dict[str, dict[str, bytes]] = defaultdict(dict)
        for number, (request_id, waiter) in enumerate(list(self._waiting.items())):
            if waiter.offer is None or waiter.news.done():
                continue
            model = waiter.offer.model
            if model not in fleets:
                fleets[model] = self._fleet(model)
            models[waiter.pool].add(model)
            if names := waiter.offer.look(fleets[model]):
                changed[waiter.pool][request_id] = names
            if not number % _AT_A_TIME:
                await asyncio.sleep(0)
        asked = self._asked()
        for pool, here in models.items():
            lists = {name: rooms for model in here for name, rooms in fleets[model].lists.items()}
            waiters = dict.fromkeys(asked.get(pool, ()), b"") | changed[pool]
            pairs = list(waiters.items())
            for start in range(0, max(1, len(pairs)), _ASKED_AT_ONCE):
                part = dict(pairs[start : start + _ASKED_AT_ONCE])
                for request_id, key in (await queueing.tend(self._client, pool, part, lists=lists)).items():
                    self._tell(request_id, key)
                lists = {}

    def _asked(self) -> dict[str, list[str]]:
        """Whose news are asked for in this round, by pool: of many, those whose turn it is."""
        ready = [(one, waiter.pool) for one, waiter in self._waiting.items() if waiter.offer and not waiter.news.done()]
        most = len(ready) if self._missed or not self._is_hearing else _ASKED_A_ROUND
        self._missed = False
        if most < len(ready):
            start = self._round % len(ready)
            self._round = start + most
            ready = (ready[start:] + ready[:start])[:most]
        asked: dict[str, list[str]] = defaultdict(list)
        for request_id, pool in ready:
            asked[pool].append(request_id)
        return asked

    def _tell(self, request_id: str, key: str) -> None:
        waiter = self._waiting.get(request_id)
        if waiter is not None and not waiter.news.done():
            waiter.news.set_result(key)
