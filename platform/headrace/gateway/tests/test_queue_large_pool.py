"""Pools of more replicas than a request ranks in its head: each is used, and when all are full the next target is."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import product

import httpx
import pytest
import redis

from engines.load.figures import State
from headrace.gateway.tests.busy import CAPACITY, Busy, capacity, endless, waited
from headrace.gateway.tests.calling import Hosted, Place
from headrace_dev.testing.invariants import eventually
from headrace_dev.testing.upstream import ScriptedUpstream
from routing.models import Route, Target


@pytest.fixture(scope="module")
def second() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream(tokens=5, interval_ms=1) as upstream:
        yield upstream


def spellings(url: str, size: int) -> list[str]:
    """The address of one server, spelled in so many ways: a replica's address is its own."""
    port = url.rpartition(":")[2]
    cases = product(*((letter, letter.upper()) for letter in "localhost"))
    return [f"http://{''.join(letters)}:{port}" for letters, _ in zip(cases, range(size), strict=False)]


class Streams:
    """Streams that last, each on a replica of its own."""

    def __init__(self, place: Place, model: str, stack: ExitStack) -> None:
        self._place, self._model, self._stack = place, model, stack
        self._client = stack.enter_context(httpx.Client(trust_env=False, timeout=60, limits=httpx.Limits()))

    def open(self) -> tuple[ExitStack, str]:
        """How it is closed, and the target that answers it."""
        body = self._place.body(endless(), stream=True, model=self._model)
        url, headers = f"{self._place.web.url}/v1/chat/completions", self._place.world.headers()
        one = self._stack.enter_context(ExitStack())
        answer = one.enter_context(self._client.stream("POST", url, json=body, headers=headers))
        assert answer.status_code == 200, answer.read()
        return one, answer.headers["x-headrace-target"]


@contextmanager
def streams(place: Place, model: str) -> Iterator[Streams]:
    with ExitStack() as stack:
        yield Streams(place, model, stack)


@pytest.mark.parametrize("size", [17, 64, 100])
def test_the_next_target_answers_when_the_whole_pool_is_full(
    site: Place, second: ScriptedUpstream, valkey: "redis.Redis", size: int
) -> None:
    model = site.add_route(spellings(site.upstream.url, size), Hosted(second.url))
    pool = f"{model.lower()}-0"
    with capacity(valkey, CAPACITY, *(f"{pool}/r{number}" for number in range(size))), streams(site, model) as opened:
        went = [opened.open()[1] for _ in range(size)]
        assert set(went) == {pool}
        answer = site.chat(model=model)
        assert (answer.status, answer.headers["x-headrace-target"]) == (200, f"{model.lower()}-1")
        assert answer.record["queue_ms"] == 0


def test_who_waits_takes_whichever_replica_comes_free(site: Place, valkey: "redis.Redis") -> None:
    size = 20
    model = site.add_route(spellings(site.upstream.url, size))
    pool = f"{model.lower()}-0"
    busy = Busy({"one": site, "other": site}, valkey)
    busy.pool = pool
    with capacity(valkey, CAPACITY, *(f"{pool}/r{number}" for number in range(size))), streams(site, model) as opened:
        running = [opened.open()[0] for _ in range(size)]
        for one in running:
            before = set(valkey.keys(f"hr:m:room:{pool}/*"))
            assert len(before) == size
            asked = busy.ask(model=model)
            busy.wait_for(1)
            one.close()
            assert waited(asked) > 0
            eventually(lambda: len(valkey.keys(f"hr:m:room:{pool}/*")) == size - 1, 10)
            opened.open()
    busy.threads.shutdown()


def test_those_who_wait_hear_of_a_target_that_comes_to_life(
    site: Place, second: ScriptedUpstream, valkey: "redis.Redis"
) -> None:
    model = site.add_route(spellings(site.upstream.url, 1), spellings(second.url, 1))
    pools = [f"{model.lower()}-{number}" for number in range(2)]
    busy = Busy({"one": site, "other": site}, valkey)
    busy.pool = pools[0]
    with capacity(valkey, CAPACITY, *(f"{pool}/r0" for pool in pools)) as states, streams(site, model) as opened:
        states[f"{pools[1]}/r0"] = State.DOWN
        time.sleep(1.2)  # the processes look each half second
        opened.open()
        asked = [busy.ask(model=model) for _ in range(3)]
        busy.wait_for(3)
        states[f"{pools[1]}/r0"] = State.READY
        assert {future.result().headers["x-headrace-target"] for future in asked} == {pools[1]}
    busy.threads.shutdown()


def test_a_route_without_a_queue_and_a_shadow_pass_nobody_who_waits(
    site: Place, second: ScriptedUpstream, valkey: "redis.Redis"
) -> None:
    model = site.add_route(spellings(site.upstream.url, 1))
    pool = f"{model.lower()}-0"
    without = site.add_route(["http://127.0.0.1:9"], queue_length=0)
    copied = site.add_route(spellings(second.url, 1))
    Target.objects.filter(route__model=without).update(pool=pool)
    Target.objects.create(route=Route.objects.get(model=copied), position=1, pool_id=pool, shadow=100)
    site.world.wait_followed(site.web)
    busy = Busy({"one": site, "other": site}, valkey)
    busy.pool = pool
    with capacity(valkey, 4 * CAPACITY, f"{pool}/r0"), streams(site, model) as opened:
        one, _ = opened.open()
        large = busy.ask("y" * 12_000, model=model)
        busy.wait_for(1)
        for _ in range(5):
            refused = busy.ask("small", model=without, max_tokens=5).result()
            assert (refused.status, refused.error["code"]) == (503, "no_capacity")
            before = site.metric("headrace_shadows_total", outcome="left_out")
            assert busy.ask("small", model=copied, max_tokens=5).result().status == 200
            eventually(lambda: site.metric("headrace_shadows_total", outcome="left_out") == before + 1, 10)  # noqa: B023
        one.close()
        assert waited(large) > 0
        assert busy.ask("small", model=without, max_tokens=5).result().status == 200
    busy.threads.shutdown()
