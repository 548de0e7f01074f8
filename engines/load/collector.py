"""The collector: asks every replica, judges its state, and publishes the picture all web processes route by.

Any number may run; the one that holds the lease works, the others wait for it. What it knows is in Redis: the next one
goes on from there.
"""

import asyncio
import logging
import time
from datetime import datetime

import httpx
import msgspec
import redis
import redis.asyncio

from engines.load import outcomes, scaling
from engines.load.figures import KEY, Fleet, Need, Report, State, decode, encode
from engines.load.fleet import Member
from engines.load.lease import Lease
from engines.load.outcomes import Counted
from engines.load.poll import Poll
from engines.load.samples import PERIOD, Sample, slot
from engines.load.states import Condition, Seen
from engines.load.store import Store
from engines.transport import Transport

log = logging.getLogger("headrace.load")

TICK = 1.0
_WAIT = 0.5


class Watched:
    """One replica that this collector follows."""

    def __init__(self, member: Member, known: Report | None, client: httpx.AsyncClient, now_ms: int) -> None:
        """`known`: what an earlier collector published of it."""
        self.member, self.condition = member, Condition(time.monotonic(), known)
        self.poll = Poll(member.upstream, client)
        self.task = asyncio.create_task(self.poll.run())
        self.counted = Counted()
        self.since, self.told = now_ms, self.condition.state
        self.started = known.started if known else 0
        self._start_seen: float | None = None

    def seen(self) -> Seen:
        poll = self.poll
        return Seen(poll.probe, poll.probes_failed, poll.heard_at, poll.load_at, self.counted)

    def report(self, now: float, now_ms: int) -> Report:
        """As it is published. Loads carry the time of their reading, by Redis's clock."""
        condition, poll, seen = self.condition, self.poll, self.seen()
        state = condition.state
        if not self.member.wanted and state in {State.READY, State.EJECTED}:
            state = State.DRAINING
        if state != self.told:
            log.info("%s is %s%s", self.member.name, state, f": {condition.reason}" if condition.reason else "")
            self.since, self.told = now_ms, state
        if poll.starts.at != self._start_seen:
            log.info("%s was started anew", self.member.name)
            self._start_seen, self.started = poll.starts.at, now_ms
        return Report(
            state=state,
            weight=condition.weight(now, seen) if state is State.READY else 0.0,
            is_up=condition.is_up(now, seen),
            at=None if poll.load_at is None else now_ms - round((now - poll.load_at) * 1000),
            load=poll.load,
            reason=condition.reason,
            since=self.since,
            ejections=condition.ejections,
            started=self.started,
            lacks=tuple(sorted(poll.lacks)),
        )


class Collector:
    """Run `run` until cancelled. `client` is Redis; everything else it opens and closes itself."""

    def __init__(self, client: "redis.asyncio.Redis") -> None:
        self._redis = client
        self._lease = Lease(client)
        self._store = Store()
        self._http = httpx.AsyncClient(transport=Transport(), timeout=None, trust_env=False)
        self._watched: dict[str, Watched] = {}
        self._known: dict[str, Report] = {}
        self._desired: dict[str, scaling.Desired] = {}
        self._last_slot = 0
        self._is_leading = self._is_away = False

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._store.keep_up())
                group.create_task(self._lead())
        finally:
            await self._stop()

    async def _lead(self) -> None:
        while True:
            began = time.monotonic()
            try:
                await self.tick()
                self._is_away = False
            except (redis.RedisError, OSError) as error:
                if not self._is_away:
                    log.warning("Redis does not answer, nothing is published: %s", type(error).__name__)
                self._is_away = True
            except Exception:  # the boundary of a loop: a defect in one round must not end all later ones
                log.exception("a round of the collector failed")
            if (task := asyncio.current_task()) is not None and task.cancelling():
                return  # Python 3.11's `wait_for`, in which Redis's client writes, may swallow a cancellation
            period = TICK if self._is_leading else _WAIT
            await asyncio.sleep(max(0.05, began + period - time.monotonic()))

    async def tick(self) -> None:
        """One round: claim, judge, publish. Raises RedisError."""
        held, now_ms = await self._lease.claim()
        if not held:
            if self._is_leading:
                log.warning("another collector has the lease")
                await self._forget()
            return
        if not self._is_leading:
            await self._take_over(now_ms)
        if self._store.members is None:
            return  # an empty picture would say that there is no fleet
        self._follow(self._store.members, now_ms)
        counts = await outcomes.read(self._redis, list(self._watched))
        now = time.monotonic()
        ejected = []
        for name, watched in self._watched.items():
            watched.counted = counts[name]
            if watched.condition.judge(now, watched.seen()):
                ejected.append(name)
            watched.poll.answered_at = watched.condition.answered_at
        await outcomes.forgive(self._redis, ejected)
        reports = {name: watched.report(now, now_ms) for name, watched in self._watched.items()}
        fleet = Fleet(at=now_ms, replicas=reports, pools=self._needs(now, reports))
        if await self._lease.publish(encode(fleet)):
            self._sample(now_ms, reports)

    async def _take_over(self, now_ms: int) -> None:
        text = await self._redis.get(KEY)
        try:
            fleet = decode(text) if text else Fleet(0)
        except msgspec.MsgspecError:  # one of another version
            fleet = Fleet(0)
        self._known = fleet.replicas
        self._desired = {pool: scaling.Desired(need.desired) for pool, need in fleet.pools.items()}
        self._last_slot = now_ms // (PERIOD * 1000)
        self._is_leading = True
        log.info("collecting")

    def _follow(self, members: list[Member], now_ms: int) -> None:
        """Watch exactly `members`."""
        wanted = {member.name: member for member in members}
        for name, watched in list(self._watched.items()):
            member = wanted.get(name)
            if member is None or member.upstream != watched.member.upstream:
                watched.task.cancel()
                del self._watched[name]
            else:
                watched.member = member
        for name, member in wanted.items():
            if name not in self._watched:
                self._watched[name] = Watched(member, self._known.pop(name, None), self._http, now_ms)

    def _needs(self, now: float, reports: dict[str, Report]) -> dict[str, Need]:
        pools: dict[str, list[Report]] = {}
        for name, report in reports.items():
            pools.setdefault(self._watched[name].member.pool, []).append(report)
        needs = {}
        for pool, rows in pools.items():
            up, ready = sum(row.is_up for row in rows), [row for row in rows if row.state is State.READY]
            loads = [row.load for row in ready if row.load is not None]
            count = scaling.wanted(len(ready), up, loads)
            desired = self._desired.setdefault(pool, scaling.Desired()).next(now, count)
            needs[pool] = Need(desired=desired, up=up, ready=len(ready))
        return needs

    def _sample(self, now_ms: int, reports: dict[str, Report]) -> None:
        number = now_ms // (PERIOD * 1000)
        if number == self._last_slot:
            return
        self._last_slot = number
        at = slot(now_ms)
        self._store.add([self._one(at, name, report, now_ms) for name, report in reports.items()])

    def _one(self, at: datetime, name: str, report: Report, now_ms: int) -> Sample:
        member = self._watched[name].member
        is_fresh = report.at is not None and now_ms - report.at <= PERIOD * 1000
        return Sample(
            at=at,
            pool=member.pool,
            replica=name,
            up=report.is_up,
            state=report.state,
            hour_cost=member.hour_cost,
            currency=member.currency,
            load=report.load if is_fresh else None,
        )

    async def _forget(self) -> None:
        tasks = [watched.task for watched in self._watched.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._watched.clear()
        self._desired.clear()
        self._is_leading = False

    async def _stop(self) -> None:
        was_leading = self._is_leading
        await self._forget()
        try:
            if was_leading:
                await self._lease.release()
        except (redis.RedisError, OSError):
            log.debug("the lease runs out by itself")
        await self._http.aclose()
        await self._store.close()
