"""What happens to the parts while the crowd asks: each fault at its share of the requests, in a seed's order."""

import asyncio
import os
import random
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import redis
import redis.asyncio
from django.db import connection

from billing.models import Price
from headrace.tests.chaos.crowd import Crowd
from headrace.tests.chaos.parts import LEASE_SECONDS, Parts
from headrace.tests.chaos.reference import LATER_RATES, Prices
from tenants.meters.holds import HOLDS, USAGE

# Everything goes, if the stream is drained and there are as many holds as streams are running: no dead process has left
# one, which only a reaper could settle. How many there were.
_FLUSH = """
local held = redis.call('ZCARD', KEYS[2])
if redis.call('XLEN', KEYS[1]) > 0 or held ~= tonumber(ARGV[1]) then return 0 end
redis.call('FLUSHALL')
return held
"""
_CAUGHT = 2  # streams that run in a process that is to stand still
Fault = Callable[[], Coroutine[Any, Any, None]]


class Monkey:
    """Every fault leaves all parts running, except for the time in which the next needs them down."""

    def __init__(self, parts: Parts, crowd: Crowd, seed: int, say: Callable[[str], None]) -> None:
        self._parts, self._crowd, self._say = parts, crowd, say
        self._seed, self._rng = seed, random.Random(f"{seed}/monkey")
        self.flushed: list[int] = []
        self.done: list[str] = []
        self.prices = Prices()

    def plan(self) -> list[Fault]:
        faults: list[Fault] = (
            [self.kill_valkey] * 3 + [self.flush] * 3 + [self.stop_postgres] * 2 + [self.kill_worker] * 2
        )
        faults += [self.kill_uvicorn, self.kill_daphne, self.freeze_uvicorn, self.freeze_daphne] * 2
        faults += [self.set_clock_back]
        faults += [self.kill_web_without_valkey, self.kill_beat, self.stop_postgres_and_kill_valkey, self.change_price]
        if chosen := os.environ.get("CHAOS_FAULTS"):
            faults = [fault for fault in faults if fault.__name__ in chosen.split(",")]
        random.Random(f"{self._seed}/plan").shuffle(faults)
        return faults

    async def run(self) -> None:
        """All of the plan; each fault begins when its share of the requests is done."""
        plan = self.plan()
        for number, fault in enumerate(plan, 1):
            while self._crowd.done < self._crowd.number * number / (len(plan) + 1):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            name = fault.__name__
            self._say(f"{self._crowd.done:6} done: {name}")
            await fault()
            self.done.append(name)
        self._crowd.may_end = True

    # --- the faults ---------------------------------------------------------------------------------------------------
    async def kill_valkey(self) -> None:
        self._parts.services.valkey.kill()
        await self._moment()
        await self._start_valkey()

    async def flush(self) -> None:
        """At a moment when the stream is drained and streams are running: nobody else asks until it has come."""
        over = asyncio.Event()
        self._crowd.gate.clear()
        running = asyncio.create_task(self._crowd.keep_open(8, over))
        try:
            async with redis.asyncio.Redis.from_url(self._parts.services.redis_url) as client, asyncio.timeout(240):
                while not (flushed := await self._flush(client)):
                    if running.done() or not self._crowd.running:  # a slow worker: all of them have ended
                        over.set()
                        await running
                        over.clear()
                        running = asyncio.create_task(self._crowd.keep_open(8, over))
                    await asyncio.sleep(0.01)
            self.flushed.append(flushed)
            await self._moment()
        finally:
            over.set()
            await running
            while self._crowd.running:  # noqa: ASYNC110  without a hold: a killed process would take them with it
                await asyncio.sleep(0.05)
            self._crowd.gate.set()

    async def _flush(self, client: "redis.asyncio.Redis") -> int:
        running = self._crowd.running.values()
        if not running or not all(seen.events for seen in running):
            return 0
        try:
            return int(await client.eval(_FLUSH, 2, USAGE, HOLDS, len(running)))
        except redis.RedisError:
            return 0

    async def stop_postgres(self) -> None:
        postgres = self._parts.services.postgres
        await asyncio.to_thread(postgres.stop)
        await self._moment(3)
        postgres.start()
        await asyncio.to_thread(postgres.wait_ready)

    async def stop_postgres_and_kill_valkey(self) -> None:
        await asyncio.gather(self.stop_postgres(), self.kill_valkey())

    async def kill_uvicorn(self) -> None:
        await self._restart_web("uvicorn")

    async def kill_daphne(self) -> None:
        await self._restart_web("daphne")

    async def freeze_uvicorn(self) -> None:
        await self._freeze_web("uvicorn")

    async def freeze_daphne(self) -> None:
        await self._freeze_web("daphne")

    async def _freeze_web(self, server: str) -> None:
        """Past its lease, with streams running: until a reaper has settled all of them, and it has heard of that."""
        over = asyncio.Event()
        running = await self._open_long_ones(over)
        try:
            async with asyncio.timeout(120):
                while self._long_ones(server) < _CAUGHT:
                    if not self._long_ones():  # they were refused: budgets are counted anew
                        over.set()
                        await running
                        over.clear()
                        running = await self._open_long_ones(over)
                    await asyncio.sleep(0.05)
                self._parts.freeze_web(server)
                await self._reaped()
                self._parts.thaw_web(server)
                while self._long_ones(server):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
        finally:
            self._parts.thaw_web(server)
            over.set()
            await running

    async def _open_long_ones(self, until: asyncio.Event) -> "asyncio.Task[None]":
        running = asyncio.create_task(self._crowd.keep_open(8, until))
        await asyncio.sleep(0.5)  # they are asked
        return running

    def _long_ones(self, server: str = "") -> int:
        """The streams of a minute that run: all of them, or those of which the server's clients have begun to hear."""
        running = [seen for seen in self._crowd.running.values() if seen.ask.name.startswith("long")]
        return len([seen for seen in running if seen.server == server and seen.events] if server else running)

    async def _reaped(self) -> None:
        async with redis.asyncio.Redis.from_url(self._parts.services.redis_url) as client:
            await asyncio.sleep(LEASE_SECONDS)
            while await self._expired(client):  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    async def _expired(self, client: "redis.asyncio.Redis") -> int:
        seconds, _ = await client.time()
        return int(await client.zcount(HOLDS, "-inf", int(seconds) * 1000))

    async def set_clock_back(self) -> None:
        """That of the web processes, and then on again to where it should be. Leases are judged by Valkey's."""
        self._parts.clock.set(datetime.now(UTC) - timedelta(seconds=10))
        await self._moment(6)
        self._parts.clock.set(datetime.now(UTC))

    async def kill_web_without_valkey(self) -> None:
        """Its streams have ended in a spool that another process has to deliver."""
        self._parts.services.valkey.kill()
        await self._moment()
        await self._parts.kill_web("uvicorn")
        await self._start_valkey()
        await self._parts.start_web("uvicorn")

    async def kill_worker(self) -> None:
        self._parts.worker.kill()

    async def kill_beat(self) -> None:
        self._parts.beat.kill()
        await self._moment()
        self._parts.beat.start()

    async def change_price(self) -> None:
        """Soon, so that every process knows of it by then; streams that run over it keep the old one."""
        at = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=6)
        await asyncio.to_thread(self._set_price, at)
        self.prices.changed_at = at

    def _set_price(self, at: datetime) -> None:
        world = self._crowd.world
        try:
            rates = dict(zip(("input", "cached_input", "output"), LATER_RATES, strict=True))
            Price.objects.create(model=world.model, currency=world.tenant.currency, effective_from=at, **rates)
        finally:
            connection.close()

    # --- parts of them ------------------------------------------------------------------------------------------------
    async def _restart_web(self, server: str) -> None:
        await self._parts.kill_web(server)
        await self._moment()
        await self._parts.start_web(server)

    async def _start_valkey(self) -> None:
        valkey = self._parts.services.valkey
        valkey.start()
        await asyncio.to_thread(valkey.wait_ready)

    async def _moment(self, most: float = 1.5) -> None:
        await asyncio.sleep(self._rng.uniform(0.2, most))
