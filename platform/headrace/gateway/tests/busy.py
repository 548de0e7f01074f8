"""A replica with room for one request, behind two web processes: whoever comes second waits."""

import secrets
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import httpx
import redis

from engines.load import figures
from engines.load.figures import Fleet, Load, Report, State
from headrace.gateway.tests.calling import Answer, Place
from headrace_dev.testing.invariants import eventually
from headrace_dev.testing.upstream import prompt
from headrace_dev.testing.world import at_rest
from tenants.models import Tenant

# Room for one request of more than 500 tokens beside nothing else.
CAPACITY = 800


def quick() -> str:
    return _new(prompt(first_ms=50, tokens=2))


def endless() -> str:
    return _new(prompt(tokens=1000, stall_after=2))


def _new(script: str) -> str:
    """With a text nobody has sent: of what a replica has in its cache it would need no room."""
    return f"{script} {secrets.token_hex(8)} {'x' * 2000}"


# Read so far ahead, that a busy machine does not let it grow stale.
LEAD_MS = 60_000


@contextmanager
def capacity(valkey: "redis.Redis", tokens: int, *replicas: str) -> Iterator[dict[str, State]]:
    """What a collector would publish of these replicas, each half second: the states are the caller's to change."""
    over, states = threading.Event(), dict.fromkeys(replicas, State.READY)

    def publish() -> None:
        while not over.is_set():
            clock: Any = valkey.time()
            now = int(clock[0]) * 1000 + int(clock[1]) // 1000 + LEAD_MS
            load = Load(kv_capacity=tokens, running=0, waiting=0)
            reports = {name: Report(state, is_up=True, at=now, load=load) for name, state in states.items()}
            valkey.set(figures.KEY, figures.encode(Fleet(now, reports)))
            over.wait(0.5)

    thread = threading.Thread(target=publish)
    thread.start()
    time.sleep(0.8)  # the processes look each half second
    try:
        yield states
    finally:
        over.set()
        thread.join()


class Busy:
    """A replica with room for one, behind two web processes."""

    def __init__(self, sites: dict[str, Place], valkey: "redis.Redis") -> None:
        self.place, self.other = sites.values()
        self.valkey = valkey
        self.pool = self.place.world.name
        self.threads = ThreadPoolExecutor(64)
        self.secrets: dict[str, str] = {}

    def key(self, priority: str = "standard", tenant: Tenant | None = None) -> str:
        world = self.place.world
        project = world.project
        if tenant is not None:
            project = tenant.projects.create(slug="app", name="App")
        _, secret = world.add_key(project, priority=priority)
        for place in (self.place, self.other):
            place.wait_known(secret=secret)
        return secret

    def ask(self, content: str = "", *, at: Place | None = None, **fields: Any) -> "Future[Answer]":
        place = at or self.place
        return self.threads.submit(lambda: place.chat(content or quick(), **fields))

    def waiting(self) -> int:
        count: Any = self.valkey.hlen(f"hr:q:{self.pool}:w")
        return int(count)

    def wait_for(self, number: int) -> None:
        eventually(lambda: self.waiting() == number, 10, lambda: f"{self.waiting()} wait")

    @contextmanager
    def occupied(self) -> Iterator[None]:
        """Somebody has all the room until the end of the block."""
        place = self.place
        body = place.body(endless(), stream=True)
        with (
            httpx.Client(trust_env=False, timeout=60) as client,
            client.stream(
                "POST", f"{place.web.url}/v1/chat/completions", json=body, headers=place.world.headers()
            ) as answer,
        ):
            assert answer.status_code == 200
            assert self.room()
            yield

    def room(self) -> int:
        held: Any = self.valkey.get(f"hr:m:room:{self.pool}/r1")
        return int(held or 0)

    def is_left(self) -> None:
        at_rest(self.valkey, 10)
        assert (self.waiting(), self.room()) == (0, 0)
        assert [key for key in self.valkey.scan_iter(f"hr:q:{self.pool}:*") if not key.endswith(b":s")] == []


def waited(future: "Future[Answer]") -> int:
    """Milliseconds a request waited; it was answered."""
    answer = future.result()
    assert answer.status == 200, answer.raw
    return int(answer.headers["x-headrace-queue-ms"])


def ended_waiting(future: "Future[Answer]") -> datetime:
    """When it was given room; it was answered."""
    wait = timedelta(milliseconds=waited(future))
    return datetime.fromisoformat(future.result().record["admitted_at"]) + wait
