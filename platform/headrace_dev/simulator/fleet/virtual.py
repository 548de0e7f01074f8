"""Replicas in virtual time: hours of a fleet in seconds, without a wall clock, the same at every run.

`Clock` runs what is due in order of time (then of asking); a `VirtualReplica` turns its scheduler's steps into events.
"""

import heapq
from collections.abc import Callable
from itertools import count

from headrace_dev.simulator.fleet.profile import Profile
from headrace_dev.simulator.fleet.request import Request
from headrace_dev.simulator.fleet.scheduler import Scheduler, Step

Heard = Callable[[Request, float], None]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()

    def at(self, time: float, do: Callable[[], None]) -> None:
        """Do it then, or next if that is past."""
        heapq.heappush(self._due, (max(time, self.now), next(self._order), do))

    def after(self, seconds: float, do: Callable[[], None]) -> None:
        self.at(self.now + seconds, do)

    def run(self, until: float = float("inf")) -> None:
        """Go on until nothing is due, or nothing before `until`."""
        while self._due and self._due[0][0] <= until:
            self.now, _, do = heapq.heappop(self._due)
            do()


class VirtualReplica:
    """`on_end` hears of each request that ended, by itself or aborted; `on_first` of each first token."""

    def __init__(
        self, profile: Profile, clock: Clock, *, on_end: Heard | None = None, on_first: Heard | None = None
    ) -> None:
        self.scheduler = Scheduler(profile)
        self._clock = clock
        self._on_end = on_end
        self._on_first = on_first
        self._step: Step | None = None

    def add(self, request: Request) -> None:
        """Raises TooLong, QueueFull."""
        before = self.scheduler.profile.costs.before
        if before:
            arrived = self._clock.now
            self._clock.after(before, lambda: self._enter(request, arrived))
        else:
            self._enter(request, self._clock.now)

    def _enter(self, request: Request, arrived: float) -> None:
        self.scheduler.add(request, self._clock.now)
        request.arrived = arrived
        if self._step is None:
            self._next()

    def _next(self) -> None:
        step = self.scheduler.plan(self._clock.now)
        self._step = step
        if step is None:
            self._tell_ended(self.scheduler.settle())
        else:
            self._clock.after(step.seconds, self._complete)

    def _complete(self) -> None:
        step = self._step
        if step is None:
            return
        now = self._clock.now
        told = self.scheduler.complete(step, now)
        self._step = None
        if self._on_first is not None:
            for request, _ in step.reads:
                if request.first_at == now:
                    self._on_first(request, now)
        self._tell_ended(told.ended)
        if self._step is None:
            self._next()

    def _tell_ended(self, ended: list[Request]) -> None:
        if self._on_end is not None:
            for request in ended:
                self._on_end(request, self._clock.now)
