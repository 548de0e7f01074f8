"""The load that decides is what all processes' requests hold of a replica; it comes back with each of them."""

import json
import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import httpx
import msgspec
import pytest
import redis

from headrace.gateway.tests.fleet import Fleet, replicas_of, scripted_fleet
from headrace_dev.testing.upstream import ScriptedUpstream, prompt
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import at_rest
from routing.attention_load import KEY


@pytest.fixture(scope="module")
def upstreams() -> Iterator[list[ScriptedUpstream]]:
    with scripted_fleet(3) as upstreams:
        yield upstreams


@pytest.fixture(scope="module")
def fleets(
    committed: None, quick_webs: dict[str, WebProcess], upstreams: list[ScriptedUpstream]
) -> tuple[Fleet, Fleet]:
    """One model behind two web processes."""
    one, two = quick_webs.values()
    fleet = Fleet(one, upstreams)
    there = fleet.at(two)
    there.wait_known(fleet.world.model)
    return fleet, there  # type: ignore[return-value]


def stalled(fleet: Fleet, stack: ExitStack, size: int) -> str:
    """A stream that goes on until it is left, of a prompt of about so many bytes; the replica it went to."""
    before = {number: len(upstream.requests()) for number, upstream in enumerate(fleet.upstreams, 1)}
    client = stack.enter_context(httpx.Client(trust_env=False, timeout=30))
    words = secrets.token_hex(size // 2)
    body = fleet.body(prompt(words, tokens=1000, stall_after=2), stream=True)
    stack.enter_context(
        client.stream(
            "POST", f"{fleet.web.url}/v1/chat/completions", content=json.dumps(body), headers=fleet.world.headers()
        )
    )
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        for number, upstream in enumerate(fleet.upstreams, 1):
            if len(upstream.requests()) > before[number]:
                return f"r{number}"
        time.sleep(0.01)
    raise AssertionError("no replica was asked")


def test_it_counts_what_another_process_holds(fleets: tuple[Fleet, Fleet], valkey: "redis.Redis") -> None:
    here, there = fleets
    with ExitStack() as stack:
        busy = {stalled(here, stack, 200_000) for _ in range(2)}
        assert len(busy) == 2  # two long prompts go to two replicas
        time.sleep(0.4)
        records = [there.chat(secrets.token_hex(2000)).record for _ in range(20)]
        went = replicas_of(records)
        assert sum(went[name] for name in busy) <= 2  # but for exploring, all to the third
        rooms: dict[str, Any] = {key.decode(): int(valkey.get(key) or 0) for key in valkey.scan_iter("hr:m:room:*")}
        assert len(rooms) == 2
        assert all(tokens > 30_000 for tokens in rooms.values())
    at_rest(valkey)
    assert list(valkey.scan_iter("hr:m:room:*")) == []


def hand(valkey: "redis.Redis", pool: str) -> list[list[int]]:
    """[found, unread] of each replica of the pool that has any, as the processes tell."""
    told: Any = valkey.hgetall(KEY)
    works = [msgspec.msgpack.decode(data)[1] for data in told.values()]
    return [work for each in works for name, work in each.items() if name.startswith(f"{pool}/")]


def soon(valkey: "redis.Redis", pool: str, wanted: Callable[[list[list[int]]], bool]) -> None:
    deadline = time.monotonic() + 5
    while not wanted(hand(valkey, pool)):
        assert time.monotonic() < deadline, hand(valkey, pool)
        time.sleep(0.02)


def test_it_tells_what_is_still_to_be_read_until_the_first_token(
    fleets: tuple[Fleet, Fleet], valkey: "redis.Redis"
) -> None:
    here, _ = fleets
    pool, words = here.world.name, secrets.token_hex(10_000)
    with ThreadPoolExecutor(1) as threads:
        done = threads.submit(here.chat, prompt(words, tokens=50, first_ms=1000, interval_ms=20), stream=True)
        soon(valkey, pool, lambda works: any(unread > 2000 for _, unread in works))
        soon(valkey, pool, lambda works: not any(unread for _, unread in works))
        assert not done.done()
        done.result()
        done = threads.submit(here.chat, prompt(words, tokens=50, first_ms=1000, interval_ms=20), stream=True)
        soon(valkey, pool, lambda works: any(found > 2000 and unread < 1000 for found, unread in works))
        done.result()
    soon(valkey, pool, lambda works: works == [])
