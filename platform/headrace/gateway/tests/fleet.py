"""A model served by several scripted replicas, for tests of where requests go."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from engines.models import Replica
from headrace.gateway.tests.calling import Place
from headrace_dev.testing.upstream import ScriptedUpstream
from headrace_dev.testing.web import WebProcess


class Fleet(Place):
    """A place whose pool has the replicas r1, r2, ... `went` says how many chats each has got since it was asked."""

    def __init__(self, web: WebProcess, upstreams: list[ScriptedUpstream], **route: Any) -> None:
        super().__init__(web, upstreams[0])
        self.upstreams = upstreams
        for number, upstream in enumerate(upstreams[1:], 2):
            upstream.reset()
            Replica.objects.filter(url=upstream.url).delete()
            Replica.objects.create(pool_id=self.world.name, name=f"r{number}", url=upstream.url)
        # Its own model is known already, perhaps with one replica: a later one is known with all of them.
        self.world.model = self.add_model(**route)
        self.wait_known(self.world.model)

    def went(self) -> dict[str, int]:
        counts = {f"r{number}": len(upstream.requests()) for number, upstream in enumerate(self.upstreams, 1)}
        for upstream in self.upstreams:
            upstream.reset()
        return counts


@contextmanager
def scripted_fleet(size: int) -> Iterator[list[ScriptedUpstream]]:
    with ExitStack() as stack:
        yield [stack.enter_context(ScriptedUpstream(tokens=5, interval_ms=1)) for _ in range(size)]


def replicas_of(records: list[dict[str, Any]]) -> Counter[str]:
    """How many of the records each replica served."""
    return Counter(record["replica"].partition("/")[2] for record in records)
