"""Replicas that were silent to a tenant's requests: its next ones go elsewhere for a while, where they can.

A replica may serve by its probe, and others besides, and say nothing to requests. That is no reason to keep everybody
from it (the requests may be what it hangs at: own_faults.py), but the tenant whose requests got nothing in their time
need not have each new one find that out for itself.

Kept by each process, by upstream (its name and model, as for breakers) and tenant. After a silence the upstream is
passed over for FIRST_PAUSE seconds, doubling up to LONGEST_PAUSE with each that follows; then one request tries it,
and the others pass it over until something is heard. An answer, or a refusal of the request itself, ends all that. It
is no breaker: where nobody else can be asked, a silent one is.
"""

import time
from collections.abc import Callable, Container

import msgspec

FIRST_PAUSE, LONGEST_PAUSE = 10.0, 60.0
# Beyond so many, those that are over are forgotten before another is noted.
_MOST = 4096


class _Silence(msgspec.Struct):
    """noted_at, until: seconds of the clock. count: silences in a row."""

    noted_at: float
    until: float
    count: int = 1


class Silences:
    """What a process heard nothing of. Upstreams are named by their replicas' keys."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._by_tenant: dict[str, dict[str, _Silence]] = {}

    def of(self, tenant: str) -> frozenset[str]:
        """The upstreams that requests of `tenant` pass over now."""
        silences = self._by_tenant.get(tenant)
        if not silences:
            return frozenset()
        now = self._clock()
        return frozenset(upstream for upstream, one in silences.items() if one.until > now)

    def note(self, upstream: str, tenant: str, *, began: float) -> None:
        """An attempt of `tenant` that began then, by the clock, got nothing in its time."""
        now, silences = self._clock(), self._by_tenant.setdefault(tenant, {})
        before = silences.get(upstream)
        if before is None or now > before.until + LONGEST_PAUSE:
            if sum(map(len, self._by_tenant.values())) >= _MOST:
                self._forget_old(now)
                silences = self._by_tenant.setdefault(tenant, {})
            silences[upstream] = _Silence(now, now + FIRST_PAUSE)
        elif began > before.noted_at:  # else it was asked before anybody could know, and is the same silence
            before.count += 1
            before.noted_at = now
            before.until = now + min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(16, before.count - 1))

    def asked(self, upstream: str, tenant: str) -> None:
        """A request of `tenant` goes there: if its pause is over, this one is the trial that others wait for."""
        one = self._by_tenant.get(tenant, {}).get(upstream)
        if one is not None:
            one.until = max(one.until, self._clock() + FIRST_PAUSE)

    def answered(self, upstream: str, tenant: str) -> None:
        """Something was heard: it is silent no more."""
        silences = self._by_tenant.get(tenant)
        if silences is not None and silences.pop(upstream, None) is not None and not silences:
            del self._by_tenant[tenant]

    def keep(self, upstreams: Container[str]) -> None:
        """Forget those that are no longer there."""
        self._filter(lambda upstream, one: upstream in upstreams)

    def _forget_old(self, now: float) -> None:
        self._filter(lambda upstream, one: one.until + LONGEST_PAUSE >= now)

    def _filter(self, is_kept: Callable[[str, _Silence], bool]) -> None:
        kept = {
            tenant: {upstream: one for upstream, one in silences.items() if is_kept(upstream, one)}
            for tenant, silences in self._by_tenant.items()
        }
        self._by_tenant = {tenant: silences for tenant, silences in kept.items() if silences}
