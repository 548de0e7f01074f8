"""Which prompts a step reads, as SGLang's PrefillAdder chooses them (srt/managers/schedule_policy.py, 0.5.23).

Limits of a step: `chunk` prompt tokens, `max_prefill` for all prompts begun, `max_running` requests, and room: KV for
each prompt and all the output it may produce, beside what running requests are expected to need (`ratio` of what they
may still produce). The first that does not fit ends the step's choice: nobody overtakes.
"""

from typing import TYPE_CHECKING

from headrace_dev.simulator.fleet.profile import CLIPPED_OUTPUT, PREEMPTION_THRESHOLD
from headrace_dev.simulator.fleet.request import Request

if TYPE_CHECKING:
    from headrace_dev.simulator.fleet.scheduler import Scheduler


class Admission:
    def __init__(self, scheduler: "Scheduler") -> None:
        self._scheduler = scheduler
        self._cache = scheduler.cache
        self._page = scheduler.profile.page
        self._chunk = scheduler.profile.chunk
        self._input = scheduler.profile.max_prefill
        self._chosen: list[tuple[Request, int]] = []
        # Tokens promised to running and chosen requests beyond what they hold.
        self._promised = sum(self._expected(request) for request in scheduler.running)

    def choose(self) -> list[tuple[Request, int]]:
        """Start prompts: each with the token up to which it is computed now. Blocks are locked and taken."""
        scheduler = self._scheduler
        if scheduler.reading is not None:
            self._go_on(scheduler.reading)
        waiting = scheduler.waiting
        while waiting and self._chunk > 0 and self._input > 0 and scheduler.reading is None:
            request = waiting[0]
            if scheduler.is_full and not self._outranks(request):
                break
            if not self._has_place(request):
                scheduler.is_full = True
                break
            if not self._start(request):
                break
        return self._chosen

    def _expected(self, request: Request) -> float:
        return min(request.allowed, CLIPPED_OUTPUT) * self._scheduler.ratio

    def _room(self) -> float:
        return self._cache.available * self._page - self._promised

    def _start(self, request: Request) -> bool:
        """Begin to read `request`, the first of those waiting. False: not in this step."""
        page = self._page
        most = min((request.input - 1) // page, len(request.chain))
        blocks = self._cache.match(request.chain, most)
        new = request.input - blocks * page
        if self._chosen and new > self._input:
            return False
        end = request.input
        if new > self._chunk:
            end = blocks * page + self._chunk // page * page
            if end == blocks * page:
                return False
        self._scheduler.waiting.popleft()
        self._cache.lock(request.chain, 0, blocks)
        request.locked, request.computed = blocks, blocks * page
        self._tell(request)
        self._promised += page + min(request.allowed, CLIPPED_OUTPUT) + (request.input - end)
        self._compute(request, end)
        return True

    def _go_on(self, request: Request) -> None:
        """The next chunk of the prompt that is being read."""
        end = min(request.input, request.computed + self._chunk // self._page * self._page)
        self._promised += min(request.allowed, CLIPPED_OUTPUT) + (request.input - end)
        self._compute(request, end)

    def _compute(self, request: Request, end: int) -> None:
        need = -(-end // self._page) - request.locked - request.private
        self._cache.take(need)
        request.private += need
        self._chunk -= end - request.computed
        self._input -= end - request.computed
        self._scheduler.reading = request if end < request.input else None
        self._chosen.append((request, end))

    def _tell(self, request: Request) -> None:
        if request.cached is None:
            request.cached = request.computed
            self._scheduler.counters.prompt_tokens += request.prompt
            self._scheduler.counters.hit_tokens += request.cached

    def _has_place(self, request: Request) -> bool:
        """Whether there is room and a place for it, made by preempting lower priorities if need be."""
        most = self._scheduler.profile.max_running - len(self._chosen)
        blocks = self._cache.match(request.chain, min((request.input - 1) // self._page, len(request.chain)))
        wanted = request.input - blocks * self._page + min(request.allowed, CLIPPED_OUTPUT) + self._page
        wanted += self._cache.idle_among(request.chain, blocks) * self._page  # locking them leaves that much less
        if len(self._scheduler.running) < most and wanted <= self._room():
            return True
        return self._preempt(request, wanted - self._room(), places=len(self._scheduler.running) - most + 1)

    def _outranks(self, request: Request) -> bool:
        return any(request.priority - r.priority > PREEMPTION_THRESHOLD for r in self._scheduler.running)

    def _preempt(self, request: Request, tokens: float, *, places: int) -> bool:
        """Take back enough lower-ranked requests, lowest and latest first, or none."""
        victims: list[Request] = []
        for other in sorted(self._scheduler.running, key=lambda r: (r.priority, -r.arrived)):
            if tokens <= 0 and places <= 0:
                break
            if request.priority - other.priority <= PREEMPTION_THRESHOLD:
                return False
            victims.append(other)
            tokens -= other.private * self._page + self._expected(other)
            places -= 1
        if tokens > 0 or places > 0:
            return False
        for other in victims:
            self._promised -= self._expected(other)
            self._scheduler.take_back(other)
            self._scheduler.counters.preemptions += 1
        return True
