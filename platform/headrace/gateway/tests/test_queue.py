"""All replicas are busy: requests wait their turn over two web processes, and whoever leaves leaves nothing behind."""

import json
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import httpx
import pytest
import redis

from headrace.gateway.tests.busy import CAPACITY, Busy, capacity, ended_waiting, quick, waited
from headrace.gateway.tests.calling import Place
from headrace_dev.testing.invariants import eventually
from routing.models import Route


@pytest.fixture
def busy(sites: dict[str, Place], valkey: "redis.Redis") -> Iterator[Busy]:
    busy = Busy(sites, valkey)
    with capacity(valkey, CAPACITY, f"{busy.pool}/r1"):
        yield busy
        busy.is_left()
        busy.threads.shutdown()


def test_it_waits_and_is_answered(busy: Busy) -> None:
    with busy.occupied():
        asked = [busy.ask(at=place, stream=stream) for place in (busy.place, busy.other) for stream in (True, False)]
        busy.wait_for(4)
        time.sleep(0.5)
    waits = [waited(future) for future in asked]
    assert min(waits) >= 450
    records = [future.result().record for future in asked]
    assert [record["queue_ms"] for record in records] == waits
    assert all(record["ttft_ms"] >= record["queue_ms"] for record in records)
    assert waited(busy.ask()) == 0


def test_a_higher_class_goes_first_and_a_header_only_lowers(busy: Busy) -> None:
    fast, slow = busy.key("interactive"), busy.key("batch")
    with busy.occupied():
        asked = []
        for secret, wish in ((fast, "batch"), (slow, "interactive"), (fast, "")):
            asked.append(busy.ask(secret=secret, headers={"x-headrace-priority": wish} if wish else {}))
            busy.wait_for(len(asked))
            time.sleep(0.2)
    ends = [ended_waiting(future) for future in asked]
    assert ends[2] < ends[0] < ends[1]  # the last two are of one class and one tenant: in order of arrival
    refused = busy.ask(secret=fast, headers={"x-headrace-priority": "urgent"}).result()
    assert (refused.status, refused.error["code"]) == (400, "invalid_request")


def test_a_tenant_that_sends_much_does_not_keep_another_waiting(busy: Busy) -> None:
    other = busy.key(tenant=busy.place.world.add_tenant("globex"))
    with busy.occupied():
        many = [busy.ask() for _ in range(8)]
        busy.wait_for(8)
        one = busy.ask(secret=other, at=busy.other)
        busy.wait_for(9)
    mine, theirs = waited(one), sorted(waited(future) for future in many)
    assert mine < theirs[3]


def test_leaving_the_queue_gives_all_back(busy: Busy) -> None:
    def left() -> list[dict[str, Any]]:
        records = busy.place.web.records()
        mine = [record for record in records if record["model"] == busy.place.world.model]
        return [record for record in mine if record["status"] == "cancelled" and record["upstream_id"] is None]

    with busy.occupied():
        before = len(left())
        for number, stream in enumerate((True, False), 1):
            with (
                httpx.Client(trust_env=False, timeout=60) as client,
                ThreadPoolExecutor(1) as threads,
                suppress(httpx.HTTPError, RuntimeError),
            ):
                body = busy.place.body(quick(), stream=stream)
                url, headers = f"{busy.place.web.url}/v1/chat/completions", busy.place.world.headers()
                asking = threads.submit(client.post, url, json=body, headers=headers, timeout=3)
                busy.wait_for(1)
                asking.result()  # it gives up after three seconds
            busy.wait_for(0)
            eventually(lambda number=number: len(left()) == before + number, 10)  # type: ignore[misc]
            assert left()[-1]["input_tokens"] == 0


def test_a_wait_is_bounded_in_time_and_number(busy: Busy) -> None:
    def bound(**bounds: Any) -> None:
        Route.objects.filter(model=busy.place.world.model).update(**bounds)
        time.sleep(2)

    def refused(status: int, code: str) -> None:
        answer = busy.ask().result()
        assert answer.status == status, (answer.headers, answer.raw)
        assert answer.error["code"] == code
        assert int(answer.headers["retry-after"]) >= 1

    bound(queue_timeout=0.5)
    with busy.occupied():
        refused(503, "no_capacity")
        eventually(lambda: _last_failed(busy)["labels"].get("error") == "no_capacity", 10)
    bound(queue_timeout=60, queue_length=8)
    with busy.occupied():
        two = [busy.ask(), busy.ask()]
        busy.wait_for(2)
        refused(429, "rate_limit_exceeded")  # a quarter of the queue is a tenant's part
    assert all(waited(future) for future in two)
    bound(queue_length=0)
    with busy.occupied():
        refused(503, "no_capacity")
    bound(queue_length=1000)


def test_four_that_fill_the_queue_do_not_keep_a_fifth_out(busy: Busy) -> None:
    """The newest of one that has most makes room, and is told so at once."""
    Route.objects.filter(model=busy.place.world.model).update(queue_timeout=60, queue_length=8)
    secrets = [busy.key(tenant=busy.place.world.add_tenant(f"full{number}")) for number in range(5)]
    time.sleep(2)
    with busy.occupied():
        asked = []
        for number in range(8):
            place = (busy.place, busy.other)[number % 2]
            asked.append(busy.ask(secret=secrets[number // 2], at=place, stream=number % 3 == 0))
            busy.wait_for(number + 1)
        fifth = busy.ask(secret=secrets[4], at=busy.other)
        eventually(lambda: sum(future.done() for future in asked) == 1, 10)
        (gone,) = [number for number, future in enumerate(asked) if future.done()]
        busy.wait_for(8)
        answer = asked.pop(gone).result()
        assert gone % 2 == 1, "the newer of its tenant's two"
        assert (answer.status, answer.error["code"]) == (429, "rate_limit_exceeded")
        assert "made room" in answer.error["message"]
        assert int(answer.headers["retry-after"]) >= 1
    assert waited(fifth) > 0
    assert all(waited(future) > 0 for future in asked)
    Route.objects.filter(model=busy.place.world.model).update(queue_timeout=30, queue_length=1000)
    time.sleep(2)


def test_a_tenants_projects_take_turns(busy: Busy) -> None:
    world = busy.place.world
    tenant = world.add_tenant("initech")
    big, small = busy.key(tenant=tenant), ""
    project = tenant.projects.create(slug="other", name="Other", weight=3)
    _, small = world.add_key(project)
    for place in (busy.place, busy.other):
        place.wait_known(secret=small)
    with busy.occupied():
        many = [busy.ask(secret=big) for _ in range(8)]
        busy.wait_for(8)
        few = [busy.ask(secret=small, at=busy.other) for _ in range(3)]
        busy.wait_for(11)
    ends = sorted(ended_waiting(future) for future in many)
    assert all(ended_waiting(future) < ends[3] for future in few)


def test_nothing_is_left_of_many_that_come_and_go(busy: Busy, valkey: "redis.Redis") -> None:
    dice, told = random.Random(7), list[str]()

    def one(number: int) -> int:
        place = (busy.place, busy.other)[number % 2]
        try:
            answer = httpx.post(
                f"{place.web.url}/v1/chat/completions",
                content=json.dumps(place.body(quick(), stream=bool(number % 3))),
                headers=place.world.headers() | {"content-type": "application/json"},
                timeout=dice.choice([0.2, 0.6, 30]),
                trust_env=False,
            )
        except httpx.TimeoutException:
            return 0
        told.append(answer.text[:200])
        return answer.status_code

    statuses = list(busy.threads.map(one, range(60)))
    assert set(statuses) <= {0, 200, 503}  # a Redis that answers late on a busy machine is told as such
    assert statuses.count(200) >= 10, told


def test_a_stream_that_waits_is_kept_alive(place: Place, valkey: "redis.Redis") -> None:
    """By comments after the seconds that `gateway` lets pass; what it ends with is an answer like any other.

    The last test: its world takes the replica from the one before."""
    busy = Busy({"one": place, "other": place}, valkey)
    with capacity(valkey, CAPACITY, f"{busy.pool}/r1"):
        with busy.occupied():
            asked = busy.ask(stream=True)
            busy.wait_for(1)
            time.sleep(4)
        answer = asked.result()
        busy.is_left()
    busy.threads.shutdown()
    assert answer.raw.startswith(b": keep-alive\n\n")
    assert (answer.status, answer.is_done) == (200, True)
    assert answer.record["queue_ms"] >= 4000


def _last_failed(busy: Busy) -> dict[str, Any]:
    """What waited in vain was admitted: it is on record, with the reason."""
    records = busy.place.web.records()
    return [record for record in records if record["model"] == busy.place.world.model][-1]
