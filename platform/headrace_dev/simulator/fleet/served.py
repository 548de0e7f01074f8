"""One simulated replica in scaled real time: its scheduler's steps take `scale` real seconds for each of theirs."""

import asyncio
from collections.abc import Callable

from headrace_dev.simulator.fleet.profile import Profile
from headrace_dev.simulator.fleet.request import Request
from headrace_dev.simulator.fleet.scheduler import Scheduler

LATENESS_KEPT = 100_000


class Run:
    """A request being served. `news` waits until more tokens were said than `seen`, or the request has ended."""

    def __init__(self, request: Request, text: str) -> None:
        self.request = request
        self.text = text
        self._wake: asyncio.Future[None] | None = None

    @property
    def is_over(self) -> bool:
        return bool(self.request.finish)

    async def news(self, seen: int) -> int:
        """The number of tokens said so far."""
        while self.request.generated <= seen and not self.is_over:
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        return self.request.generated

    def tell(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


class ServedReplica:
    """`clock` gives simulated seconds, the same for all replicas of a process; `scale` real seconds make one of them.

    A step ends when it should, even if the loop wakes late: lateness does not add up. `lateness` keeps how late, in
    real seconds: a process that is late by more than a step simulates nothing any more.
    """

    def __init__(self, profile: Profile, clock: Callable[[], float], scale: float) -> None:
        self.scheduler = Scheduler(profile)
        self.scale = scale
        self.runs: dict[str, Run] = {}
        self.lateness: list[float] = []
        self._clock = clock
        self._wake = asyncio.Event()

    @property
    def now(self) -> float:
        return self._clock()

    def add(self, run: Run) -> None:
        """Raises TooLong, QueueFull."""
        self.scheduler.add(run.request, self.now)
        self.runs[run.request.rid] = run
        self._wake.set()

    def abort(self, run: Run) -> None:
        self.scheduler.abort(run.request)
        self._wake.set()

    async def serve(self) -> None:
        """Work until cancelled."""
        now = self.now
        while True:
            step = self.scheduler.plan(now)
            if step is None:
                self._end(self.scheduler.settle())
                if self.scheduler.busy:
                    raise RuntimeError("the scheduler holds requests and has no step for them")
                self._wake.clear()
                await self._wake.wait()
                now = self.now
                continue
            now += step.seconds
            await asyncio.sleep((now - self.now) * self.scale)
            if len(self.lateness) < LATENESS_KEPT:
                self.lateness.append((self.now - now) * self.scale)
            told = self.scheduler.complete(step, now)
            for request in told.tokens:
                if not request.finish and (run := self.runs.get(request.rid)) is not None:
                    run.tell()
            self._end(told.ended)

    def _end(self, requests: list[Request]) -> None:
        for request in requests:
            if (run := self.runs.pop(request.rid, None)) is not None:
                run.tell()
