"""Redis loses everything under running streams: they are held again before anybody else is let in."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pytest
import redis

from headrace.gateway.tests.calling import Answer, Place
from headrace_dev.testing.budgets import add_budget, counter, kept, on_record
from headrace_dev.testing.invariants import eventually
from headrace_dev.testing.upstream import prompt
from headrace_dev.testing.world import at_rest, drained
from tenants.meters import holds
from tenants.models import ApiKey

UNIT = 10**9
SLOW = prompt(first_ms=4000, tokens=100)
RUNNING = 8


@pytest.fixture
def webs(sites: dict[str, Place]) -> Iterator[list[Place]]:
    """Two web processes, whose leases are renewed each half second; a token of output costs one unit."""
    webs = list(sites.values())
    webs[0].world.price(input="0", cached_input="0", output="1000000")
    with kept(patience=1.0):
        yield webs


def codes(answers: list[Answer]) -> Counter[str]:
    return Counter("ok" if answer.status == 200 else f"{answer.status} {answer.error['code']}" for answer in answers)


class Running:
    """Streams at both processes, which hold 100 units each and will cost as much."""

    def __init__(self, threads: ThreadPoolExecutor, webs: list[Place], secret: str, valkey: "redis.Redis") -> None:
        ask = partial(Place.chat, content=SLOW, secret=secret, max_tokens=100, stream=True)
        self._asked: list[Future[Answer]] = [threads.submit(ask, webs[n % 2]) for n in range(RUNNING)]
        eventually(lambda: valkey.zcard(holds.HOLDS) == RUNNING)
        time.sleep(0.3)

    def answers(self) -> list[Answer]:
        return [asked.result() for asked in self._asked]


def test_a_hard_budget_is_not_passed(webs: list[Place], valkey: "redis.Redis") -> None:
    world = webs[0].world
    key, secret = world.add_key()
    budget = add_budget(world, 1000, "tight", key=key.public_id)
    for web in webs:
        web.wait_known(secret=secret)
    eventually(lambda: codes([webs[0].chat(secret=secret, max_tokens=1)]) == {"ok": 1})
    at_rest(valkey)
    drained(valkey)
    before = on_record(budget)
    others: list[Answer] = []
    with ThreadPoolExecutor(RUNNING + 24) as threads:
        running = Running(threads, webs, secret, valkey)
        assert counter(valkey, budget).held == 800 * UNIT
        drained(valkey)
        valkey.flushall()
        is_over = threading.Event()

        def press(web: Place) -> None:
            while not is_over.is_set():
                others.append(web.chat(prompt(first_ms=200, tokens=30), secret=secret, max_tokens=30, stream=True))
                time.sleep(0.02)

        for number in range(24):
            threads.submit(press, webs[number % 2])
        answers = running.answers()
        time.sleep(2)
        is_over.set()
    assert codes(answers) == {"ok": RUNNING}
    print(codes(others))
    assert set(codes(others)) == {"ok", "503 budget_rebuilding", "429 budget_held", "402 budget_exhausted"}
    at_rest(valkey)
    drained(valkey)
    found = counter(valkey, budget)
    assert found.held == 0
    assert found.spent == on_record(budget) == before + 800 * UNIT + codes(others)["ok"] * 30 * UNIT
    assert 970 * UNIT < found.spent <= 1000 * UNIT


def test_concurrency_and_tokens_are_held_again_within_a_moment(webs: list[Place], valkey: "redis.Redis") -> None:
    world = webs[0].world
    key, secret = world.add_key(concurrency=RUNNING + 2, output_tokens_per_minute=1000)
    for web in webs:
        web.wait_known(secret=secret)
    with ThreadPoolExecutor(RUNNING) as threads:
        running = Running(threads, webs, secret, valkey)
        rooms = room_held(valkey)
        drained(valkey)
        valkey.flushall()
        eventually(lambda: valkey.zcard(holds.HOLDS) == RUNNING, 1)
        assert valkey.get(f"hr:m:key:{key.public_id}:concurrency") == b"%d" % RUNNING
        assert room_held(valkey) == rooms
        [answer] = [webs[0].chat(secret=secret, max_tokens=300)]
        assert (answer.status, answer.error["code"]) == (429, "rate_limit_exceeded")
        assert codes(running.answers()) == {"ok": RUNNING}
    at_rest(valkey)
    assert ApiKey.objects.filter(pk=key.pk).exists()


def room_held(valkey: "redis.Redis") -> dict[bytes, int]:
    return {key: int(valkey.get(key) or 0) for key in valkey.scan_iter("hr:m:room:*")}
