"""The state of one replica: from what became of real requests first, from probes second.

- Ejected: EJECT_AFTER real failures in a row, whatever its health says. Deadlines passed count only while none of its
  streams delivers: an engine that writes is overloaded, not dead.
- Down: DOWN_AFTER probes in a row failed, and no real request was answered lately. An engine that tells its load while
  its health hangs is busy with a long prompt, not down: its next requests wait. One that is stuck fails those it has.
- Back: the first probe or answer after that (of an ejected one after a pause that doubles with each ejection). Its
  share of new requests then rises over RAMP_SECONDS; a failure meanwhile ejects it again.
"""

import msgspec

from engines.load.figures import Report, State
from engines.load.outcomes import Counted

EJECT_AFTER = 3
DOWN_AFTER = 3
RAMP_SECONDS = 30.0
FIRST_WEIGHT = 0.1
# Of one whose last probe failed, before it counts as down.
DOUBTED_WEIGHT = 0.25
PAUSE_SECONDS = 10.0
LONGEST_PAUSE = 300.0
ANSWERS_COUNT_FOR = 5.0
# A server that said anything so lately runs, and costs money.
UP_FOR = 12.0


class Seen(msgspec.Struct):
    """What is known of a replica now. `..._at`: seconds of the caller's clock; None: never. See Poll for `probe`.

    loaded_at: when it last told its load.
    """

    probe: str = ""
    probes_failed: int = 0
    heard_at: float | None = None
    loaded_at: float | None = None
    counted: Counted = msgspec.field(default_factory=Counted)


class Condition:
    """One replica's history. `judge` it once a second; its state then is `report`'s."""

    def __init__(self, now: float, known: Report | None = None) -> None:
        """`known`: what an earlier collector published of it."""
        self.state = State.STARTING
        self.reason = ""
        self.ejections = 0
        self.answered_at: float | None = None
        self._counted: Counted | None = None
        self._until = now  # of an ejection
        self._recovering_since: float | None = None
        if known is not None:
            self.ejections = known.ejections
            if known.state in {State.READY, State.DRAINING}:
                self.state = State.READY
            elif known.state in {State.EJECTED, State.DOWN}:
                self.state, self.reason = known.state, known.reason
                self._until = now + self._pause()

    def judge(self, now: float, seen: Seen) -> bool:
        """Take in what is known; whether it was ejected just now."""
        new_failures = self._take(now, seen.counted)
        serves = seen.probe == "ok" or self._answers(now)
        is_gone = seen.probes_failed >= DOWN_AFTER and not self._answers(now) and not _is_busy(now, seen)
        match self.state:
            case State.STARTING if serves:
                self._become(State.READY)
            case State.STARTING if is_gone and seen.probe == "refused":
                self._become(State.DOWN, "nothing listens there")
            case State.READY if self._failed(now, seen.counted, new_failures):
                self.ejections += 1
                self._until = now + self._pause()
                self._become(State.EJECTED, self._why(seen.counted))
                return True
            case State.READY | State.EJECTED if is_gone:
                self._become(State.DOWN, _WHY_DOWN.get(seen.probe, "its health fails"))
            case State.EJECTED if serves and now >= self._until:
                self._recover(now)
            case State.DOWN if serves:
                self._recover(now)
            case State.READY if self._recovering_since is not None and now - self._recovering_since >= RAMP_SECONDS:
                self._recovering_since, self.ejections = None, 0
        return False

    def weight(self, now: float, seen: Seen) -> float:
        if self.state is not State.READY:
            return 0.0
        weight = 1.0
        if self._recovering_since is not None:
            weight = min(1.0, max(FIRST_WEIGHT, (now - self._recovering_since) / RAMP_SECONDS))
        if seen.probes_failed and not self._answers(now):
            weight = min(weight, DOUBTED_WEIGHT)
        return round(weight, 3)

    def is_up(self, now: float, seen: Seen) -> bool:
        """Whether its server runs. One that hangs runs, until its probes make it down."""
        heard = max((at for at in (seen.heard_at, self.answered_at) if at is not None), default=None)
        return self.state is not State.DOWN and heard is not None and (now - heard <= UP_FOR or seen.probe == "silent")

    def _take(self, now: float, counted: Counted) -> int:
        """The failures since the last look; those from before the first are an earlier collector's."""
        before, self._counted = self._counted or counted, counted
        if counted.ok != before.ok or counted.beats != before.beats:
            self.answered_at = now
        return max(0, counted.failed - before.failed)

    def _answers(self, now: float) -> bool:
        return self.answered_at is not None and now - self.answered_at <= ANSWERS_COUNT_FOR

    def _failed(self, now: float, counted: Counted, new: int) -> bool:
        in_a_row = counted.hard if self._answers(now) else counted.hard + counted.slow
        if self._recovering_since is not None and new and in_a_row:
            return True
        return in_a_row >= EJECT_AFTER

    def _why(self, counted: Counted) -> str:
        return f"{counted.hard + counted.slow} requests failed in a row"

    def _recover(self, now: float) -> None:
        self._become(State.READY)
        self._recovering_since = now

    def _become(self, state: State, reason: str = "") -> None:
        self.state, self.reason = state, reason
        self._recovering_since = None

    def _pause(self) -> float:
        return min(LONGEST_PAUSE, PAUSE_SECONDS * float(2 ** min(10, max(0, self.ejections - 1))))


def _is_busy(now: float, seen: Seen) -> bool:
    return seen.probe == "silent" and seen.loaded_at is not None and now - seen.loaded_at <= ANSWERS_COUNT_FOR


_WHY_DOWN = {
    "refused": "nothing listens there",
    "silent": "it does not answer",
    "starting": "it answers that it does not serve",
}
