"""Circuit breakers: an upstream that keeps failing is left alone for a while, then tried by one request at a time.

    closed     requests pass. FAILURES in a row open it; so does, at once, an upstream that says how long to stay away.
    open       nothing passes until its pause is over: what Retry-After said, else 1 s, doubling up to 60 s each time a
               trial fails, give or take a fifth, so that processes do not come back all at once; cut short, unless it
               was asked for, once probes say that it serves again.
    half-open  one request at a time passes. Its first byte closes the breaker, its failure opens it again.

An upstream is its name and the model it is asked for, "NAME MODEL": a provider that limits one model serves another.

What counts is failures of that upstream alone: what a client caused, and a client that left, say nothing of it; nor
does a request that got nothing in its time while others were answered: it waited its turn, behind a higher class. Each
process keeps its own: no message has to arrive for it to work, and each sees enough of its own traffic.

A failure may also be the fault of the request, so it may name the tenant that sent it. While all failures in a row name
one tenant, the breaker opens for that tenant alone: the others' requests pass, and the first of them that fails opens
it for all, as the first that is answered closes it. Once several tenants are named, each counts for at most half of
what opens it: one tenant's flood and another's single mishap are no outage.
"""

import math
import random
import time
from collections.abc import Callable, Mapping, Set

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
# After so long another request may try beside a trial that nothing is heard of: it may be one that no engine answers.
TRIAL_SECONDS = 5.0
# What an upstream may ask for itself, in seconds.
LONGEST_ASKED = 600.0

CLOSED, HALF_OPEN, OPEN = 0, 1, 2

Told = Callable[[str, int], None]


class _Breaker:
    def __init__(self, name: str) -> None:
        self.name, self.state = name, CLOSED
        self.server = name.partition(" ")[0]
        # Failures in a row, while closed, by the tenant whose fault they may be; None: the upstream's own beyond doubt.
        self.failing: dict[str | None, int] = {}
        self.only_for: str | None = None  # while not closed: the one tenant that is kept out; None: all are
        self.answered_at = -math.inf  # when it last began or completed an answer
        self.pauses = 0  # in a row, without an answer that was completed
        self.until = 0.0
        self.is_asked = False  # whether the upstream itself told until when
        self.is_over = False  # whether it was told that its pause is
        self.epoch = 0  # how often it opened: what began before says nothing any more
        self.trial: Pass | None = None


class Pass:
    """One attempt's leave to ask an upstream. Say what became of it by one of the verbs; only the first end counts."""

    def __init__(self, breakers: "Breakers", breaker: _Breaker) -> None:
        self._breakers, self._breaker, self._epoch = breakers, breaker, breaker.epoch
        self._began = breakers._clock()

    def answered(self) -> None:
        """The upstream works: a first byte came, or a refusal of the request itself."""
        if self._counts():
            self._breaker.answered_at = self._breakers._clock()
            if self._breaker.state != CLOSED:  # half-open, or open for another tenant
                self._breakers._close(self._breaker)

    def succeeded(self) -> None:
        """The whole answer came."""
        self.answered()
        if self._counts():
            self._breaker.failing.clear()
            self._breaker.pauses = 0

    def failed(self, *, pause: float | None = None, tenant: str | None = None) -> None:
        """The upstream failed. pause: it is to be left alone for so many seconds, however well it did before. tenant:
        whose request may be at fault; None: no request can be."""
        if self._counts():
            self._breaker.failing[tenant] = self._breaker.failing.get(tenant, 0) + 1
            self._breakers._judge(self._breaker, pause, tenant)
        elif pause is not None:
            self._breakers._prolong(self._breaker, pause)

    def waited(self) -> None:
        """Nothing came in its time: a failure, unless the upstream answered others meanwhile."""
        if self._breaker.answered_at < self._began:
            self.failed()

    def left(self) -> None:
        """It ended without a word on the upstream. Also after any other verb: a trial that is over makes room."""
        if self._breaker.trial is self:
            self._breaker.trial = None

    def _counts(self) -> bool:
        return self._epoch == self._breaker.epoch


class Breakers:
    """The breakers of a process, by the upstream's name. failures: so many in a row open one; 0: none ever opens.

    told: hears of each change of state, by server: the worst of its models. One whose pause is over counts as half-open
    there, though nobody tries it.
    """

    def __init__(
        self, *, failures: int, told: Told = lambda name, state: None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._failures, self._told, self._clock = failures, told, clock
        self._breakers: dict[str, _Breaker] = {}
        self._serving: Set[tuple[str, int]] = frozenset()
        self._upstreams: Mapping[str, object] = {}
        self._tenant_pauses: dict[tuple[str, str | None], float] = {}  # until when, by the upstream's name and tenant

    def wait(self, name: str, tenant: str | None = None) -> float:
        """How many seconds until `name` may be asked by a request of `tenant`; 0: now."""
        own = self._tenant_pauses.get((name, tenant)) if self._tenant_pauses else None
        left = 0.0 if own is None else max(0.0, own - self._clock())
        return max(left, self._wait(name, tenant))

    def _wait(self, name: str, tenant: str | None) -> float:
        breaker = self._breakers.get(name)
        if breaker is None or breaker.state == CLOSED or breaker.only_for not in {None, tenant}:
            return 0.0
        if breaker.state == OPEN:
            return max(0.0, breaker.until - self._clock())
        if breaker.trial is None or self._clock() - breaker.trial._began > TRIAL_SECONDS:
            return 0.0
        return FIRST_PAUSE  # its trial is under way

    def enter(self, name: str, tenant: str | None = None) -> Pass | None:
        """Leave to ask `name` for a request of `tenant`; None if it is to be left alone now. Call `left` on it in the
        end."""
        if self.wait(name, tenant) > 0:
            return None
        breaker = self._breakers.setdefault(name, _Breaker(name))
        leave = Pass(self, breaker)
        if breaker.only_for not in {None, tenant}:
            return leave
        if breaker.state == OPEN:
            breaker.is_over = False
            self._change(breaker, HALF_OPEN)
        if breaker.state == HALF_OPEN:
            breaker.trial = leave
        return leave

    def pause_tenant(self, name: str, tenant: str, seconds: float) -> None:
        """Keep requests of `tenant` away from `name` for so long; those of others go on."""
        if self._failures:
            self._tenant_pauses[name, tenant] = self._clock() + min(seconds, LONGEST_ASKED)

    def see(self, serving: Set[tuple[str, int]]) -> None:
        """Learn which servers serve by their probes, and which start of each it is. Those that did not a moment ago may
        be tried at once: after a long outage the pause would keep them idle for up to a minute."""
        back = {server for server, _ in serving - self._serving}
        self._serving = serving
        now = self._clock()
        self._tenant_pauses = {of: until for of, until in self._tenant_pauses.items() if until > now}
        for breaker in self._breakers.values():
            if breaker.state == OPEN and not breaker.is_over:
                if breaker.server in back and not breaker.is_asked:
                    breaker.until = now
                if breaker.until <= now:
                    breaker.is_over = True
                    self._tell(breaker.server)

    def keep(self, upstreams: Mapping[str, object]) -> None:
        """Forget those that are no longer there, by name, and those that are another than before: at another address,
        say, or with another key."""
        before, self._upstreams = self._upstreams, upstreams
        for name, breaker in list(self._breakers.items()):
            if name not in upstreams or upstreams[name] != before.get(name, upstreams[name]):
                breaker.epoch += 1  # what runs there says nothing any more
                breaker.state, breaker.only_for = CLOSED, None
                del self._breakers[name]
                self._tell(breaker.server)

    def _judge(self, breaker: _Breaker, pause: float | None, tenant: str | None) -> None:
        if not self._failures:
            return
        if breaker.state != CLOSED:  # its trial, or a tenant's that it is not open for
            self._open(breaker, pause, tenant if breaker.only_for == tenant else None)
        elif pause is not None:
            self._open(breaker, pause, None)
        elif self._in_a_row(breaker) >= self._failures:
            self._open(breaker, None, tenant if len(breaker.failing) == 1 else None)

    def _in_a_row(self, breaker: _Breaker) -> int:
        failing = breaker.failing
        if len(failing) == 1:
            return sum(failing.values())
        most = (self._failures + 1) // 2
        return sum(count if tenant is None else min(count, most) for tenant, count in failing.items())

    def _open(self, breaker: _Breaker, pause: float | None, only_for: str | None) -> None:
        breaker.only_for = only_for
        breaker.is_asked = pause is not None
        if pause is None:
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2**breaker.pauses) * random.uniform(0.8, 1.2)
            breaker.pauses = min(breaker.pauses + 1, 10)
        breaker.epoch += 1
        breaker.failing.clear()
        breaker.trial, breaker.is_over = None, False
        breaker.until = self._clock() + min(pause, LONGEST_ASKED)
        self._change(breaker, OPEN)

    def _prolong(self, breaker: _Breaker, pause: float) -> None:
        if breaker.state == OPEN:
            breaker.is_asked, breaker.is_over = True, False
            breaker.until = max(breaker.until, self._clock() + min(pause, LONGEST_ASKED))

    def _close(self, breaker: _Breaker) -> None:
        breaker.failing.clear()
        breaker.trial, breaker.only_for = None, None
        self._change(breaker, CLOSED)

    def _change(self, breaker: _Breaker, state: int) -> None:
        breaker.state = state
        self._tell(breaker.server)

    def _tell(self, server: str) -> None:
        states = (HALF_OPEN if one.is_over else one.state for one in self._breakers.values() if one.server == server)
        self._told(server, max(states, default=CLOSED))
