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
"""

import math
import random
import time
from collections.abc import Callable, Mapping, Set

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
# What an upstream may ask for itself, in seconds.
LONGEST_ASKED = 600.0

CLOSED, HALF_OPEN, OPEN = 0, 1, 2

Told = Callable[[str, int], None]


class _Breaker:
    def __init__(self, name: str) -> None:
        self.name, self.state = name, CLOSED
        self.server = name.partition(" ")[0]
        self.failures = 0  # in a row, while closed
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
            if self._breaker.state == HALF_OPEN:
                self._breakers._close(self._breaker)

    def succeeded(self) -> None:
        """The whole answer came."""
        self.answered()
        if self._counts():
            self._breaker.failures = self._breaker.pauses = 0

    def failed(self, *, pause: float | None = None) -> None:
        """The upstream failed. pause: it is to be left alone for so many seconds, however well it did before."""
        if self._counts():
            self._breaker.failures += 1
            self._breakers._judge(self._breaker, pause)
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

    def wait(self, name: str) -> float:
        """How many seconds until `name` may be asked; 0: now."""
        breaker = self._breakers.get(name)
        if breaker is None or breaker.state == CLOSED:
            return 0.0
        if breaker.state == OPEN:
            return max(0.0, breaker.until - self._clock())
        return 0.0 if breaker.trial is None else FIRST_PAUSE  # its trial is under way

    def enter(self, name: str) -> Pass | None:
        """Leave to ask `name`; None if it is to be left alone now. Call `left` on it in the end."""
        if self.wait(name) > 0:
            return None
        breaker = self._breakers.setdefault(name, _Breaker(name))
        leave = Pass(self, breaker)
        if breaker.state == OPEN:
            breaker.is_over = False
            self._change(breaker, HALF_OPEN)
        if breaker.state == HALF_OPEN:
            breaker.trial = leave
        return leave

    def see(self, serving: Set[tuple[str, int]]) -> None:
        """Learn which servers serve by their probes, and which start of each it is. Those that did not a moment ago may
        be tried at once: after a long outage the pause would keep them idle for up to a minute."""
        back = {server for server, _ in serving - self._serving}
        self._serving = serving
        now = self._clock()
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
                breaker.state = CLOSED
                del self._breakers[name]
                self._tell(breaker.server)

    def _judge(self, breaker: _Breaker, pause: float | None) -> None:
        if self._failures and (pause is not None or breaker.state == HALF_OPEN or breaker.failures >= self._failures):
            self._open(breaker, pause)

    def _open(self, breaker: _Breaker, pause: float | None) -> None:
        breaker.is_asked = pause is not None
        if pause is None:
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2**breaker.pauses) * random.uniform(0.8, 1.2)
            breaker.pauses = min(breaker.pauses + 1, 10)
        breaker.epoch += 1
        breaker.failures, breaker.trial, breaker.is_over = 0, None, False
        breaker.until = self._clock() + min(pause, LONGEST_ASKED)
        self._change(breaker, OPEN)

    def _prolong(self, breaker: _Breaker, pause: float) -> None:
        if breaker.state == OPEN:
            breaker.is_asked, breaker.is_over = True, False
            breaker.until = max(breaker.until, self._clock() + min(pause, LONGEST_ASKED))

    def _close(self, breaker: _Breaker) -> None:
        breaker.failures, breaker.trial = 0, None
        self._change(breaker, CLOSED)

    def _change(self, breaker: _Breaker, state: int) -> None:
        breaker.state = state
        self._tell(breaker.server)

    def _tell(self, server: str) -> None:
        states = (HALF_OPEN if one.is_over else one.state for one in self._breakers.values() if one.server == server)
        self._told(server, max(states, default=CLOSED))
