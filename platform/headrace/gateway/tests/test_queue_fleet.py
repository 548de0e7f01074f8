"""The fleet changes while requests wait: they go where there is room by then, never to what was given up."""

import time
from collections.abc import Iterator

import pytest
import redis

from engines.load.figures import State
from engines.models import Replica
from headrace.gateway.tests.busy import CAPACITY, Busy, capacity, waited
from headrace.gateway.tests.calling import Place
from headrace_dev.testing.invariants import eventually
from headrace_dev.testing.upstream import ScriptedUpstream, prompt
from routing.models import Route


@pytest.fixture(scope="module")
def second() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream(tokens=5, interval_ms=1) as upstream:
        yield upstream


@pytest.fixture
def states(sites: dict[str, Place], valkey: "redis.Redis") -> Iterator[dict[str, State]]:
    pool = next(iter(sites.values())).world.name
    with capacity(valkey, CAPACITY, f"{pool}/r1", f"{pool}/r2") as states:
        yield states


@pytest.fixture
def busy(sites: dict[str, Place], valkey: "redis.Redis", states: dict[str, State]) -> Iterator[Busy]:
    busy = Busy(sites, valkey)
    Replica.objects.filter(pool_id=busy.pool, name="r2").delete()
    time.sleep(1)
    yield busy
    busy.is_left()
    busy.threads.shutdown()


def test_it_goes_to_a_replica_that_came_while_it_waited(busy: Busy, second: ScriptedUpstream) -> None:
    with busy.occupied():
        asked = [busy.ask(), busy.ask(at=busy.other)]
        busy.wait_for(2)
        Replica.objects.create(pool_id=busy.pool, name="r2", url=second.url)
        records = [future.result().record for future in asked]
    assert {record["replica"] for record in records} == {f"{busy.pool}/r2"}
    assert all(record["status"] == "ok" for record in records)


def test_it_goes_to_no_replica_that_drains_when_its_turn_comes(
    busy: Busy, second: ScriptedUpstream, states: dict[str, State]
) -> None:
    Replica.objects.create(pool_id=busy.pool, name="r2", url=second.url)
    eventually(lambda: busy.ask(at=busy.other).result().record["replica"].endswith("/r2"), 20)
    eventually(lambda: busy.ask().result().record["replica"].endswith("/r2"), 20)
    states[f"{busy.pool}/r2"] = State.DRAINING
    time.sleep(1.2)
    with busy.occupied():  # r1, as r2 drains
        states[f"{busy.pool}/r2"] = State.READY
        time.sleep(1.2)
        runs = busy.ask(prompt(tokens=30, interval_ms=100) + " never sent " + "x" * 2000)  # on r2 for some seconds
        eventually(lambda: second.stats()["open"] == 1)
        asked = busy.ask(at=busy.other)
        busy.wait_for(1)
        states[f"{busy.pool}/r1"] = State.DRAINING
        time.sleep(1.5)
    # r1 is free now, and empty.
    time.sleep(0.5)
    assert busy.waiting() == 1
    assert runs.result().status == 200
    assert asked.result().record["replica"] == f"{busy.pool}/r2"
    assert waited(asked) > 1000


def test_it_waits_for_another_replica_when_its_own_fails(
    busy: Busy, second: ScriptedUpstream, states: dict[str, State]
) -> None:
    Replica.objects.create(pool_id=busy.pool, name="r2", url=second.url)
    states[f"{busy.pool}/r2"] = State.DRAINING
    time.sleep(1.5)
    with busy.occupied():  # r1, as r2 drains
        states[f"{busy.pool}/r2"] = State.READY
        time.sleep(1.5)
        second.script(status=500)
        asked = [busy.ask(f"{number} {'x' * 2000}", stream=number > 1) for number in (1, 2)]
        busy.wait_for(2)
        time.sleep(0.5)
    answers = [future.result() for future in asked]
    second.reset()
    for answer in answers:
        assert answer.status == 200, answer.raw
        assert answer.headers["x-headrace-fallback"] == "1"
        assert answer.record["replica"] == f"{busy.pool}/r1"
        assert answer.record["queue_ms"] == int(answer.headers["x-headrace-queue-ms"]) >= 400


def test_its_time_is_over_before_it_may_ask(busy: Busy) -> None:
    """No engine is to blame: none was asked."""
    route = Route.objects.filter(model=busy.place.world.model)
    with busy.occupied():
        route.update(total_timeout=1)
        time.sleep(2)
        answer = busy.ask().result()
    route.update(total_timeout=600)
    time.sleep(2)
    assert (answer.status, answer.error["code"]) == (503, "no_capacity")


def test_it_is_told_at_once_when_redis_lost_it(busy: Busy) -> None:
    with busy.occupied():
        asked = busy.ask()
        busy.wait_for(1)
        began = time.monotonic()
        busy.valkey.flushall()
        answer = asked.result()
    assert (answer.status, answer.error["code"]) == (503, "redis_unavailable")
    assert time.monotonic() - began < 10
    assert answer.headers["retry-after"] == "1"
    assert waited(busy.ask()) == 0
