"""What chooses replicas in virtual time."""

from collections.abc import Sequence
from typing import Protocol

from headrace_dev.bench.routing.prepared import Prepared
from headrace_dev.simulator.fleet.request import Request
from headrace_dev.simulator.fleet.scheduler import Scheduler


class Router(Protocol):
    """Made anew for each run. Times in simulated seconds.

    choose: the number of the replica that `one` goes to, now. began: its first token came. ended: it is over there.
    watched: what the replicas hold, told each second as a collector would; a router that counts its own requests need
    not look.
    """

    name: str

    def choose(self, one: Prepared, now: float) -> int: ...

    def began(self, one: Prepared, now: float) -> None: ...

    def ended(self, one: Prepared, request: Request, now: float) -> None: ...

    def watched(self, replicas: Sequence[Scheduler], now: float) -> None: ...
