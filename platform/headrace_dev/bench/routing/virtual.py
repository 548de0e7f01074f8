"""One run in virtual time: the trace's requests, a router's choices, simulated replicas, no HTTP and no clock.

`late` stands for HTTP: a request reaches its replica, and what a replica says is heard, so much later (seconds at the
99th percentile, exponential). What a step takes stays, as in a run over HTTP, where lateness does not add up.
"""

import math
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from headrace_dev.bench.routing.prepared import Prepared
from headrace_dev.bench.routing.router import Router
from headrace_dev.bench.routing.served import Figures, Held, Served, judge
from headrace_dev.bench.traces import Shape
from headrace_dev.simulator.fleet.request import Request
from headrace_dev.simulator.fleet.state import SAMPLED_EACH
from headrace_dev.simulator.fleet.virtual import Clock, VirtualReplica

WATCHED_EACH = 1.0


class _Sent(NamedTuple):
    """`delay`: how late what its replica says of it is heard; one for all it says, so that the order stays."""

    one: Prepared
    at: float
    delay: float


class VirtualRun:
    def __init__(self, shape: Shape, router: Router, *, late: float = 0.0) -> None:
        self._shape, self._router, self._late = shape, router, late
        self._dice = random.Random(0)
        self._clock = Clock()
        self._replicas = [
            VirtualReplica(shape.replica, self._clock, on_end=self._ended, on_first=self._began)
            for _ in range(shape.replicas)
        ]
        self._sent: dict[Request, _Sent] = {}
        self.served: list[Served] = []
        self.samples: list[list[Held]] = []

    def run(self, requests: Sequence[Prepared]) -> Figures:
        self._sample()
        self._watch()
        for one in requests:
            self._clock.at(one.asked.at, lambda one=one: self._arrive(one))  # type: ignore[misc]
        self._clock.run()
        return judge(self._shape, self.served, self.samples)

    def _arrive(self, one: Prepared) -> None:
        request, now = one.request(), self._clock.now
        self._sent[request] = _Sent(one, now, self._delay())
        replica = self._replicas[self._router.choose(one, now)]
        self._later(self._delay(), lambda: replica.add(request))

    def _delay(self) -> float:
        return self._dice.expovariate(math.log(100) / self._late) if self._late else 0.0

    def _later(self, seconds: float, do: Callable[[], None]) -> None:
        if seconds:
            self._clock.after(seconds, do)
        else:
            do()

    def _began(self, request: Request, now: float) -> None:
        sent = self._sent[request]
        self._later(sent.delay, lambda: self._router.began(sent.one, self._clock.now))

    def _ended(self, request: Request, now: float) -> None:
        sent = self._sent.pop(request)
        one = sent.one
        self._later(sent.delay, lambda: self._router.ended(one, request, self._clock.now))
        if request.first_at is None:
            raise RuntimeError(f"request {request.rid} ended without a token")
        tpot = (now - request.first_at) / max(1, request.generated - 1)
        self.served.append(
            Served(
                number=one.asked.number,
                kind=one.asked.kind,
                at=one.asked.at,
                prompt=request.prompt,
                cached=request.cached or 0,
                ttft=request.first_at + sent.delay - sent.at,
                tpot=tpot,
            )
        )

    def _sample(self) -> None:
        self.samples.append([Held(r.scheduler.running_count, len(r.scheduler.waiting)) for r in self._replicas])
        if self._clock.now < self._shape.seconds:
            self._clock.after(SAMPLED_EACH, self._sample)

    def _watch(self) -> None:
        self._router.watched([replica.scheduler for replica in self._replicas], self._clock.now)
        if self._clock.now < self._shape.seconds:
            self._clock.after(WATCHED_EACH, self._watch)
