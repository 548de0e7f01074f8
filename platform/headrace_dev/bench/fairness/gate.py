"""A gateway's queue before simulated replicas, in virtual time: who waits, who is let in, what each was served."""

from dataclasses import dataclass

from headrace_dev.bench.fairness.rule import Rule
from headrace_dev.simulator.fleet.profile import Profile
from headrace_dev.simulator.fleet.request import Request
from headrace_dev.simulator.fleet.virtual import Clock, VirtualReplica

ROOM_FACTOR = 1.25  # tokens a replica may hold, as a multiple of its KV cache: settings.ROOM_FACTOR
# SGLang's `priority` by class: by more than its threshold of 10 apart, so that people preempt batch.
ENGINE_PRIORITY = {"interactive": 40, "standard": 20, "batch": 0}


@dataclass(eq=False)
class Job:
    """One request at the gateway. `output` tokens come, which nobody knows; `most` is what is held for them."""

    name: str
    tenant: str
    priority: str
    prompt: int
    output: int
    most: int
    at: float
    replica: int = -1
    request: Request | None = None
    ended_at: float | None = None

    @property
    def need(self) -> int:
        return self.prompt + self.most

    @property
    def first_at(self) -> float | None:
        return self.request.first_at if self.request else None

    def processed(self, now: float, until: float) -> tuple[int, int]:
        """Prompt and output tokens done by `now` in a run that ended at `until`; between an answer's first token and
        its last (or the run's end) they are taken to come evenly."""
        first = self.first_at
        if self.request is None or first is None or first > now:
            return 0, 0
        last = until if self.ended_at is None else self.ended_at
        share = 1.0 if last <= first else min(1.0, (now - first) / (last - first))
        return self.prompt, round(self.request.generated * share)


class Gate:
    """Requests without a shared prefix, on the replica that holds least. `queued` says who waits, by tenant."""

    def __init__(self, profile: Profile, replicas: int, rule: Rule, *, engine_priority: bool = True) -> None:
        self.clock = Clock()
        self.replicas = [VirtualReplica(profile, self.clock, on_end=self._end) for _ in range(replicas)]
        self.jobs: list[Job] = []
        self.queued: dict[str, int] = {}
        self._rule, self._order = rule, rule.order()
        self._room = profile.kv_tokens * ROOM_FACTOR
        self._held = [0] * replicas
        self._waiting: dict[str, Job] = {}
        self._running: dict[Request, Job] = {}
        self._engine_priority = engine_priority

    def offer(self, job: Job) -> None:
        """It comes at its time."""
        self.clock.at(job.at, lambda: self._arrive(job))

    def _arrive(self, job: Job) -> None:
        self.jobs.append(job)
        self._waiting[job.name] = job
        self.queued[job.tenant] = self.queued.get(job.tenant, 0) + 1
        cost = self._rule.cost(job.prompt, job.most)
        self._order.join(job.name, tenant=job.tenant, priority=job.priority, cost=cost)
        self._let_in()

    def _let_in(self) -> None:
        while job := self._next():
            self._order.granted(job.name)
            del self._waiting[job.name]
            self.queued[job.tenant] -= 1
            self._send(job)

    def _next(self) -> Job | None:
        """The first of those whose turn it is that fits on the emptiest replica."""
        emptiest = min(self._held)
        for name in self._order.turns():
            job = self._waiting[name]
            ceiling = 1.0 if self._order.is_owed(name) else self._rule.ceiling[job.priority]
            if emptiest + job.need <= self._room * ceiling:
                return job
        return None

    def _send(self, job: Job) -> None:
        job.replica = self._held.index(min(self._held))
        self._held[job.replica] += job.need
        priority = ENGINE_PRIORITY[job.priority] if self._engine_priority else 0
        request = Request(job.name, (), job.prompt, job.output, job.most, priority)
        job.request = request
        self._running[request] = job
        self.replicas[job.replica].add(request)

    def _end(self, request: Request, now: float) -> None:
        job = self._running.pop(request)
        job.ended_at = now
        self._held[job.replica] -= job.need
        cost = self._rule.cost
        used = cost(job.prompt, request.generated) - cost(job.prompt, job.most)
        self._order.served(job.tenant, job.priority, used)
        self._let_in()
