"""Which notices may be tried at a time, so that a tenant whose endpoints are slow, dead or many harms nobody else.

Notices are taken by turns: of each tenant's places (endpoints, or the mail server) the first, then the second, ... At a
time a process tries MOST_AT_ONCE, of a tenant MOST_OF_A_TENANT, of an endpoint one; and those that are likely to take
long, because their endpoint or the mail server failed last or it is a letter, have a part of the places only.
"""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from typing import NamedTuple

from django.db.models import Exists, F, OuterRef, Q, Window
from django.db.models.functions import RowNumber

from billing.models import Delivery, Notice

MOST_AT_ONCE = 32
MOST_OF_A_TENANT = 2
MOST_LETTERS = 8
MOST_DOUBTFUL = 12
_LOOK_AHEAD = 4  # notices of each place
_MOST_FOUND = 1000


class Due(NamedTuple):
    """A notice whose time has come. endpoint: None for a letter. is_doubtful: its place took nothing the last time."""

    notice: int
    tenant: str
    endpoint: int | None
    is_doubtful: bool


def find_due(now: datetime) -> list[Due]:
    """What could be tried now, by turns of the tenants and their places, the oldest first."""
    is_told = Q(endpoint=None) | Q(endpoint__enabled=True) | Q(alert=None)
    failed = Notice.objects.filter(state=Delivery.WAITING, attempts__gt=0, endpoint=OuterRef("endpoint"))
    due = Notice.objects.filter(is_told, state=Delivery.WAITING, next_at__lte=now).annotate(
        turn=Window(RowNumber(), partition_by=[F("tenant"), F("endpoint")], order_by=[F("next_at"), F("id")]),
        is_doubtful=Q(attempts__gt=0) | Exists(failed),
    )
    rows = due.filter(turn__lte=_LOOK_AHEAD).order_by("turn", "next_at", "id")[:_MOST_FOUND]
    return [Due(*row) for row in rows.values_list("pk", "tenant", "endpoint", "is_doubtful")]


class UnderWay:
    """The tries of this process. `changes` counts those that have ended."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._taken: Counter[object] = Counter()
        self._threads: ThreadPoolExecutor | None = None
        self.changes = 0

    @property
    def is_idle(self) -> bool:
        return not self._taken["all"]

    def take(self, due: Due) -> bool:
        """Whether `due` may be tried now; it is under way then, until it is released."""
        with self._changed:
            if any(self._taken[what] >= most for what, most in _bounds(due).items()):
                return False
            self._taken.update(_bounds(due).keys())
            return True

    def release(self, due: Due) -> None:
        with self._changed:
            self._taken.subtract(_bounds(due).keys())
            self._taken = +self._taken
            self.changes += 1
            self._changed.notify_all()

    def run(self, due: Due, work: Callable[[], None]) -> "Future[None]":
        """Do the `work` of a try that was taken in a thread, and release it."""
        if self._threads is None:  # not before: a worker may fork
            self._threads = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="notice")
        ending = self._threads.submit(work)
        ending.add_done_callback(lambda _: self.release(due))
        return ending

    def wait_changed(self, since: int, seconds: float) -> None:
        """Wait until a try has ended since `changes` was `since`, for so many seconds at most."""
        with self._changed:
            self._changed.wait_for(lambda: self.changes != since, max(0.0, seconds))

    def wait_idle(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self.is_idle, max(0.0, seconds))


def _bounds(due: Due) -> dict[object, int]:
    """What a try of `due` counts for, each with how many may be under way."""
    bounds: dict[object, int] = {"all": MOST_AT_ONCE, ("tenant", due.tenant): MOST_OF_A_TENANT}
    if due.endpoint is None:
        bounds["letters"] = MOST_LETTERS
    else:
        bounds["endpoint", due.endpoint] = 1
    if due.is_doubtful:
        bounds["doubtful"] = MOST_DOUBTFUL
    return bounds


UNDER_WAY = UnderWay()
