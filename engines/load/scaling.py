"""How many replicas a pool would want, for an autoscaler: from what waits and from the KV cache.

Never from CPU or GPU utilisation: an engine with one request shows a busy GPU, and one that swaps its cache shows an
idle one. With R ready replicas, of means over those whose load is known:

    pressure = max( kv_used / KV_TARGET,  waiting / WAITING_TARGET,  waiting_tokens / TOKENS_TARGET )
    wanted   = ceil(R * pressure), unchanged (R) while 1 - TOLERANCE <= pressure <= 1 + TOLERANCE,
               at least 1, at most 2 R + 1

- KV_TARGET 0.75: above it SGLang and vLLM begin to retract running requests when answers grow.
- WAITING_TARGET 4 requests a replica: a queue that a batch takes up within a few steps.
- TOKENS_TARGET 16,384 prompt tokens a replica: two of SGLang's default prefill chunks, a second or two of prefill.

Hysteresis is that of Kubernetes's horizontal autoscaler: the figure rises only to what was wanted throughout the last
UP_SECONDS, and falls only to the most that was wanted within the last DOWN_SECONDS. A pool of whose replicas no load
is known keeps as many as are up.
"""

import math
from collections import deque
from collections.abc import Sequence

from engines.load.figures import Load

KV_TARGET = 0.75
WAITING_TARGET = 4.0
TOKENS_TARGET = 16_384.0
TOLERANCE = 0.1
UP_SECONDS = 15.0
DOWN_SECONDS = 300.0


def wanted(ready: int, up: int, loads: Sequence[Load]) -> int:
    """By the formula above, without hysteresis. `loads`: of the ready replicas, those known."""
    if not ready or not loads:
        return max(1, up)
    shares = [
        _mean([load.kv_used for load in loads]) / KV_TARGET,
        _mean([load.waiting for load in loads]) / WAITING_TARGET,
        _mean([load.waiting_tokens for load in loads]) / TOKENS_TARGET,
    ]
    pressure = max(shares)
    if abs(pressure - 1) <= TOLERANCE:
        return ready
    return min(2 * ready + 1, max(1, math.ceil(ready * pressure)))


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else 0.0


class Desired:
    """One pool's figure over time."""

    def __init__(self, start: int | None = None) -> None:
        self._value = start
        self._history: deque[tuple[float, int]] = deque()

    def next(self, now: float, count: int) -> int:
        """The figure now that `count` is wanted at `now` (seconds)."""
        self._history.append((now, count))
        while self._history[0][0] < now - DOWN_SECONDS:
            self._history.popleft()
        lately = [each for at, each in self._history if at >= now - UP_SECONDS]
        covers = now - self._history[0][0]  # no longer than we have watched
        floor = min(lately) if covers >= UP_SECONDS else None
        ceiling = max(each for _, each in self._history) if covers >= DOWN_SECONDS * 0.99 else None
        if self._value is None:
            self._value = count
        elif floor is not None and floor > self._value:
            self._value = floor
        elif ceiling is not None and ceiling < self._value:
            self._value = ceiling
        return self._value
