"""A web process is killed while requests wait in it: its own are settled without it, the others' turn comes."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx
import pytest
import redis

from billing.settlement import reap_expired
from headrace.gateway.tests.busy import CAPACITY, Busy, capacity, waited
from headrace.gateway.tests.calling import Place
from headrace.gateway.tests.conftest import QUICK
from headrace_dev.testing.invariants import parts
from headrace_dev.testing.web import WebProcess


@pytest.fixture(scope="module")
def victim(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebProcess]:
    web = WebProcess(tmp_path_factory.mktemp("victim") / "web.log", **QUICK)
    try:
        yield web.wait_ready()
    finally:
        web.kill()


@pytest.fixture
def busy(sites: dict[str, Place], victim: WebProcess, valkey: "redis.Redis") -> Iterator[Busy]:
    place = next(iter(sites.values()))
    busy = Busy({"one": place, "other": place.at(victim)}, valkey)
    busy.other.wait_known(place.world.model)
    with capacity(valkey, CAPACITY, f"{busy.pool}/r1"):
        yield busy
        busy.threads.shutdown()


@pytest.fixture
def reaper(valkey: "redis.Redis") -> Iterator[None]:
    """As Celery reaps, for a lease of 1.5 s."""
    over = threading.Event()

    def reap() -> None:
        while not over.wait(0.2):
            reap_expired(valkey, lease_seconds=1.5)

    thread = threading.Thread(target=reap)
    thread.start()
    yield
    over.set()
    thread.join()


def test_those_of_a_killed_process_give_way_to_the_others(
    busy: Busy, victim: WebProcess, valkey: "redis.Redis", reaper: None
) -> None:
    with busy.occupied():

        def ask() -> Any:
            with suppress(httpx.HTTPError):
                busy.other.chat("x" * 4000)

        dying = [busy.threads.submit(ask) for _ in range(4)]
        busy.wait_for(4)
        living = [busy.ask(), busy.ask(stream=True)]
        busy.wait_for(6)
        victim.kill()
        for future in dying:
            future.result()
        killed_at = time.monotonic()
    assert all(waited(future) > 0 for future in living)
    assert time.monotonic() - killed_at < 20
    busy.is_left()
    records = parts(valkey, busy.place.world, 0)
    assert Counter(record["status"] for record in records) == {"cancelled": 1, "abandoned": 4, "ok": 2}
    assert max(Counter(record["request_id"] for record in records).values()) == 1
    assert all(record["input_tokens"] == 0 for record in records if record["status"] == "abandoned")
