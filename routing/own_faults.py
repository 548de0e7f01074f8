"""Failures that may be a request's own fault, though the engine calls them its own.

An engine that answers 500 may be broken, or the request may be one that no engine gets through. Were each counted
against it, one tenant that sends such a request again and again would have every replica left alone, for all. So a
tenant's own failures count for nothing where others were answered of late, until somebody else's request fails too.
"""

import time
from collections.abc import Callable

LATELY_SECONDS = 60.0


class _Seen:
    def __init__(self) -> None:
        self.answered: dict[str, float] = {}  # the two tenants that were answered last, and when: the latest comes last
        self.failing: set[str] = set()  # whose requests it failed at since it last answered anybody


class OwnFaults:
    """What a process saw of each upstream."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[str, _Seen] = {}

    def answered(self, upstream: str, tenant: str) -> None:
        """`upstream` answered, or began to answer, a request of `tenant`."""
        seen = self._seen.setdefault(upstream, _Seen())
        seen.failing.clear()
        seen.answered.pop(tenant, None)
        seen.answered[tenant] = self._clock()
        if len(seen.answered) > 2:
            del seen.answered[next(iter(seen.answered))]

    def is_own(self, upstream: str, tenant: str) -> bool:
        """`upstream` failed at a request of `tenant`: whether that may be the request's own fault."""
        seen = self._seen.setdefault(upstream, _Seen())
        seen.failing.add(tenant)
        since = self._clock() - LATELY_SECONDS
        return len(seen.failing) == 1 and any(at > since for who, at in seen.answered.items() if who != tenant)
