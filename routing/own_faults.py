"""Failures that may be a request's own fault, whatever form they take.

An engine that answers 500, breaks the connection, says nothing, or sends something that is no answer may be broken, or
the request may be one that no engine gets through. Were each counted against the engine, one tenant that sends such a
request again and again would have every replica left alone, for all. So a tenant's own failures count for nothing where
others were answered of late, until somebody else's request fails too.

A failure before the first byte is held against answers that began since; one after it, against answers that came whole:
an upstream that begins every answer and breaks it off is failing, however many it begins.
"""

import time
from collections.abc import Callable, Container

LATELY_SECONDS = 60.0


class _Answers:
    """Answers of one upstream, of one kind (begun, or whole)."""

    def __init__(self) -> None:
        self._at: dict[str, float] = {}  # the two tenants that were answered last, and when: the latest comes last
        self._failing: set[str] = set()  # whose requests it failed at since it last answered anybody so; two are enough

    def note(self, tenant: str, now: float) -> None:
        self._failing.clear()
        self._at.pop(tenant, None)
        self._at[tenant] = now
        if len(self._at) > 2:
            del self._at[next(iter(self._at))]

    def fail(self, tenant: str, now: float) -> bool:
        """Note a failure; whether it may be the request's own fault."""
        if len(self._failing) < 2:
            self._failing.add(tenant)
        return len(self._failing) == 1 and self.has_any(now, besides=tenant)

    def has_any(self, now: float, *, besides: str = "") -> bool:
        return any(at > now - LATELY_SECONDS for who, at in self._at.items() if who != besides)


class _Seen:
    def __init__(self) -> None:
        self.begun, self.whole = _Answers(), _Answers()


class OwnFaults:
    """What a process saw of each upstream."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[str, _Seen] = {}

    def answered(self, upstream: str, tenant: str) -> None:
        """`upstream` began to answer a request of `tenant`."""
        self._of(upstream).begun.note(tenant, self._clock())

    def completed(self, upstream: str, tenant: str) -> None:
        """`upstream` answered a request of `tenant` to its end."""
        self._of(upstream).whole.note(tenant, self._clock())

    def is_own(self, upstream: str, tenant: str, *, is_begun: bool = False) -> bool:
        """`upstream` failed at a request of `tenant`, whose answer had begun or not: whether that may be the request's
        own fault."""
        seen = self._of(upstream)
        return (seen.whole if is_begun else seen.begun).fail(tenant, self._clock())

    def answers(self, upstream: str) -> bool:
        """Whether `upstream` began to answer anybody of late."""
        return self._of(upstream).begun.has_any(self._clock())

    def keep(self, upstreams: Container[str]) -> None:
        """Forget those that are no longer there."""
        self._seen = {name: seen for name, seen in self._seen.items() if name in upstreams}

    def _of(self, upstream: str) -> _Seen:
        return self._seen.setdefault(upstream, _Seen())
