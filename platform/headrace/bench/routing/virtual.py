"""One run in virtual time: the trace's requests, a router's choices, simulated replicas, no HTTP and no clock."""

from collections.abc import Sequence

from engines.simulator.fleet.request import Request
from engines.simulator.fleet.state import SAMPLED_EACH
from engines.simulator.fleet.virtual import Clock, VirtualReplica
from headrace.bench.routing.prepared import Prepared
from headrace.bench.routing.router import Router
from headrace.bench.routing.served import Figures, Held, Served, judge
from headrace.bench.traces import Shape

WATCHED_EACH = 1.0


class VirtualRun:
    def __init__(self, shape: Shape, router: Router) -> None:
        self._shape, self._router = shape, router
        self._clock = Clock()
        self._replicas = [
            VirtualReplica(shape.replica, self._clock, on_end=self._ended, on_first=self._began)
            for _ in range(shape.replicas)
        ]
        self._sent: dict[Request, Prepared] = {}
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
        request = one.request()
        self._sent[request] = one
        self._replicas[self._router.choose(one, self._clock.now)].add(request)

    def _began(self, request: Request, now: float) -> None:
        self._router.began(self._sent[request], now)

    def _ended(self, request: Request, now: float) -> None:
        one = self._sent.pop(request)
        self._router.ended(one, request, now)
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
                ttft=request.first_at - request.arrived,
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
