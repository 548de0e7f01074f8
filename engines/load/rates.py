"""From what an engine says at two moments: rates of its counters, and counts that go on when it starts anew."""

from engines.load.figures import Load
from engines.protocols.reading import Reading

# Rates are over at least so long: one second's worth of a counter jumps about.
_SPAN = 5.0
# What no engine has. A broken one may tell more, or less than nothing: it has told nothing then. Neither must end up in
# a room's size, nor in a sample, which Postgres would refuse with all others' of its round.
_MOST_REQUESTS, _MOST_TOKENS = 2**31 - 1, 10**12


class Rates:
    """The readings of one replica, in order. `load` is what is known after the last."""

    def __init__(self) -> None:
        self._kept: list[tuple[float, Reading]] = []
        self._retractions: int | None = None  # of the engine's earlier starts and this
        self._last_retractions = 0

    def begin_anew(self) -> None:
        """The engine was started anew: what comes next is not compared with what was."""
        self._kept.clear()

    def add(self, now: float, reading: Reading) -> Load:
        """Take in a reading made at `now` (seconds of a clock that only rises)."""
        self._kept.append((now, reading))
        while len(self._kept) > 2 and self._kept[1][0] <= now - _SPAN:
            del self._kept[0]
        rate = reading.output_rate if reading.output_rate is not None else self._rate(now)
        hits = reading.prefix_hit_rate if reading.prefix_hit_rate is not None else self._hits()
        return Load(
            running=_credible(reading.running, _MOST_REQUESTS),
            waiting=_credible(reading.waiting, _MOST_REQUESTS),
            waiting_tokens=_credible(reading.waiting_tokens, _MOST_TOKENS),
            kv_used=_share(reading.kv_used),
            kv_capacity=_credible(reading.kv_capacity, _MOST_TOKENS),
            prefix_hit_rate=_share(hits),
            retractions=self._count(_credible(reading.retractions, _MOST_TOKENS)),
            output_tokens_per_second=None if rate is None else round(min(max(0.0, rate), _MOST_TOKENS), 2),
        )

    def _rate(self, now: float) -> float | None:
        (then, first), last = self._kept[0], self._kept[-1][1]
        if first.output_tokens is None or last.output_tokens is None or now <= then:
            return None
        return (last.output_tokens - first.output_tokens) / (now - then)

    def _hits(self) -> float | None:
        """Over the kept readings; over the engine's whole life where nothing came in them."""
        first, last = self._kept[0][1], self._kept[-1][1]
        if last.prompt_tokens is None or last.cached_tokens is None:
            return None
        prompt = last.prompt_tokens - (first.prompt_tokens or 0)
        if prompt > 0:
            return (last.cached_tokens - (first.cached_tokens or 0)) / prompt
        return last.cached_tokens / last.prompt_tokens if last.prompt_tokens else None

    def _count(self, retractions: int | None) -> int | None:
        if retractions is None:  # told only now and then
            return self._retractions
        rise = retractions - self._last_retractions if retractions >= self._last_retractions else retractions
        self._retractions = (self._retractions or 0) + rise
        self._last_retractions = retractions
        return self._retractions


def _credible(count: int | None, most: int) -> int | None:
    return count if count is not None and 0 <= count <= most else None


def _share(value: float | None) -> float | None:
    return None if value is None else round(min(1.0, max(0.0, value)), 4)
