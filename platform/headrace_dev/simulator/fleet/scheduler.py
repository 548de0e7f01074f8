"""SGLang's scheduler (0.5.23) without a model, in nobody's time: `plan` a step, wait `Step.seconds`, `complete` it.

Continuous batching as SGLang does it by default: prompts go first, so many of them or so much of one as a step's chunk
allows (admission.py), and while one is read no one decodes; else all running requests decode one token. When the KV of
the next tokens finds no room, requests are retracted and wait again.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from headrace_dev.simulator.fleet import cost
from headrace_dev.simulator.fleet.admission import Admission
from headrace_dev.simulator.fleet.cache import BlockCache
from headrace_dev.simulator.fleet.profile import RATIO_AT_FIRST, RATIO_AT_LEAST, RATIO_STEPS, Profile
from headrace_dev.simulator.fleet.request import Request

RETRACT_AHEAD = 20  # decode steps kept free for those that stay (SGLANG_RETRACT_DECODE_STEPS)


class TooLong(ValueError):
    """The prompt does not fit in the replica's KV cache."""


class QueueFull(Exception):
    """More wait than --max-queued-requests allows."""


@dataclass(slots=True)
class Step:
    """`reads`: requests whose prompts are computed up to a token; `decodes`: those that say their next one."""

    seconds: float
    reads: list[tuple[Request, int]]
    decodes: list[Request]


@dataclass(slots=True)
class Told:
    """What a completed step brought: who got a token, and who of them (or of the aborted) has ended."""

    tokens: list[Request] = field(default_factory=list)
    ended: list[Request] = field(default_factory=list)


@dataclass(slots=True)
class Counters:
    """Since the start. `prompt_tokens` and `hit_tokens` at a request's first start, `computed` with repeats."""

    requests: int = 0
    finished: int = 0
    aborted: int = 0
    prompt_tokens: int = 0
    hit_tokens: int = 0
    computed_tokens: int = 0
    generated_tokens: int = 0
    retractions: int = 0
    preemptions: int = 0
    busy_seconds: float = 0.0


class Scheduler:
    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.cache = BlockCache(profile.blocks)
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.reading: Request | None = None  # the one whose prompt is longer than a step
        self.counters = Counters()
        self.ratio = RATIO_AT_FIRST
        self.is_full = False
        self._dropped: list[Request] = []
        self._context = 0  # tokens with KV of all running requests

    # --- from outside
    def add(self, request: Request, now: float) -> None:
        """Let it wait. Its max_tokens are cut to what fits. Raises TooLong, QueueFull."""
        room = self.profile.blocks * self.profile.page - self.profile.page
        if request.prompt + 1 > room:
            raise TooLong(f"the input ({request.prompt} tokens) is longer than the KV cache ({room} tokens)")
        most = self.profile.max_queued
        if most is not None and len(self.waiting) >= most:
            raise QueueFull
        request.max_tokens = max(1, min(request.max_tokens, room - request.prompt))
        request.arrived = now
        self.counters.requests += 1
        self._wait(request)

    def abort(self, request: Request) -> None:
        """End it: at once in the queue, else with the step it is in. It comes out of `complete` or `settle`."""
        request.aborted = True

    @property
    def busy(self) -> bool:
        return bool(self.waiting or self.running or self.reading)

    @property
    def running_count(self) -> int:
        """Requests begun, the one whose prompt is being read included."""
        return len(self.running) + (self.reading is not None)

    @property
    def used_tokens(self) -> int:
        """Tokens of KV that running requests hold."""
        return (self.cache.total - self.cache.available) * self.profile.page

    @property
    def waiting_tokens(self) -> int:
        """Prompt tokens that nobody has begun to compute, less what the cache has of them now."""
        page, cache = self.profile.page, self.cache
        return sum(
            r.input - cache.match(r.chain, min((r.input - 1) // page, len(r.chain))) * page for r in self.waiting
        )

    # --- a step
    def plan(self, now: float) -> Step | None:
        """The next step, begun now; None when there is nothing to do. One at a time: `complete` it before the next."""
        self._drop_aborted()
        reads = Admission(self).choose() if self.waiting or self.reading else []
        if not reads and not self.running:
            self.ratio, self.is_full = RATIO_AT_FIRST, False
            reads = Admission(self).choose() if self.waiting else []
        if reads:
            return self._read(reads)
        return self._decode() if self.running else None

    def complete(self, step: Step, now: float) -> Told:
        told = Told(ended=self._dropped)
        self._dropped = []
        self.counters.busy_seconds += step.seconds
        for request, end in step.reads:
            self._has_read(request, end, now, told)
        for request in step.decodes:
            request.computed += 1
            request.generated += 1
        self._context += len(step.decodes)
        self.counters.generated_tokens += len(step.decodes)
        told.tokens += step.decodes
        self._end_finished(step.decodes, now, told)
        return told

    def settle(self) -> list[Request]:
        """The aborted, when no step is under way."""
        self._drop_aborted()
        ended, self._dropped = self._dropped, []
        return ended

    def _read(self, reads: list[tuple[Request, int]]) -> Step:
        tokens, pairs, prefix = 0, 0.0, 0
        for request, end in reads:
            tokens += end - request.computed
            pairs += cost.pairs(request.computed, end)
            prefix += request.computed
        self.counters.computed_tokens += tokens
        time = cost.seconds(self.profile.costs, prefill=tokens, pairs=pairs, decoding=0, context=0, prefix=prefix)
        return Step(time, reads, [])

    def _decode(self) -> Step | None:
        self._make_room()
        page, need = self.profile.page, 0
        for request in self.running:
            if request.computed >= (request.locked + request.private) * page:
                request.private += 1
                need += 1
        self.cache.take(need)
        self.ratio = max(RATIO_AT_LEAST, self.ratio - (RATIO_AT_FIRST - RATIO_AT_LEAST) / RATIO_STEPS)
        count = len(self.running)
        time = cost.seconds(self.profile.costs, prefill=0, pairs=0, decoding=count, context=self._context)
        return Step(time, [], list(self.running))

    def _has_read(self, request: Request, end: int, now: float, told: Told) -> None:
        request.computed = end
        self._cache_computed(request)
        if end < request.input:
            return
        if request is self.reading:
            self.reading = None
        request.generated += 1
        self.counters.generated_tokens += 1
        if request.first_at is None:
            request.first_at = now
        told.tokens.append(request)
        self.running.append(request)
        self._context += request.computed
        self._end_finished([request], now, told)

    def _end_finished(self, requests: Iterable[Request], now: float, told: Told) -> None:
        leaving = [r for r in requests if r.generated >= r.output or r.generated >= r.max_tokens]
        for request in leaving:
            request.finish = "stop" if request.generated >= request.output else "length"
            request.ended_at = now
            self.counters.finished += 1
            told.ended.append(request)
            self._leave(request)

    # --- leaving
    def _leave(self, request: Request) -> None:
        self.running.remove(request)
        self._context -= request.computed
        self.is_full = False
        self._cache_computed(request)
        self._release(request)

    def _cache_computed(self, request: Request) -> None:
        full = min(request.computed // self.profile.page, len(request.chain))
        if full > request.locked:
            self.cache.insert(request.chain, request.locked, full)
            request.private -= full - request.locked
            request.locked = full

    def _release(self, request: Request) -> None:
        self.cache.unlock(request.chain, request.locked)
        self.cache.give(request.private)
        request.locked = request.private = 0

    def take_back(self, request: Request) -> None:
        """A running request loses its KV and waits again; what of it was cached stays until evicted."""
        self.running.remove(request)
        self._context -= request.computed
        self._release(request)
        request.computed = 0
        request.retracted += 1
        self._wait(request)

    def _wait(self, request: Request) -> None:
        """In order of priority, then of arrival."""
        key = (-request.priority, request.arrived)
        if not self.waiting or key >= (-self.waiting[-1].priority, self.waiting[-1].arrived):
            self.waiting.append(request)
            return
        place = next(i for i, r in enumerate(self.waiting) if (-r.priority, r.arrived) > key)
        self.waiting.insert(place, request)

    def _make_room(self) -> None:
        """Retract until everyone that is left has room for its next token: the shortest answers, longest prompts."""
        page = self.profile.page

        def short(ahead: int) -> bool:
            need = sum(max(0, -(-(r.computed + ahead) // page) - r.locked - r.private) for r in self.running)
            return need > self.cache.available

        if self.cache.available >= len(self.running) or not short(1):
            return
        order = sorted(self.running, key=lambda r: (r.generated, -r.prompt), reverse=True)
        while len(order) > 1 and short(1):
            self.take_back(order.pop())
            self.counters.retractions += 1
            self.is_full = True
        said = sum(r.generated for r in self.running) + RETRACT_AHEAD * len(self.running)
        self.ratio = min(1.0, said / (sum(r.max_tokens for r in self.running) + 1))

    def _drop_aborted(self) -> None:
        for request in [r for r in self.running if r.aborted]:
            self._end(request)
            self._leave(request)
        if self.reading is not None and self.reading.aborted:
            self._end(self.reading)
            self._release(self.reading)
            self.reading = None
        if any(r.aborted for r in self.waiting):
            for request in self.waiting:
                if request.aborted:
                    self._end(request)
            self.waiting = deque(r for r in self.waiting if not r.aborted)

    def _end(self, request: Request) -> None:
        request.finish = "abort"
        self.counters.aborted += 1
        self._dropped.append(request)
