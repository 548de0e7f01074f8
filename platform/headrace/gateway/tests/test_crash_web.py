"""A web process dies, or freezes past its lease: its requests are settled without it, once."""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from headrace.gateway.tests.conftest import QUICK
from headrace_dev.testing.clients import streams
from headrace_dev.testing.invariants import charged, debt, eventually, idle, parts, progress, reaped, settled
from headrace_dev.testing.upstream import ScriptedUpstream, prompt
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World

LIMIT = 6000  # output tokens a minute: 100 drain in a second
SCRIPT = prompt(tokens=100, interval_ms=30)


@pytest.fixture(scope="module")
def victim(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebProcess]:
    """Frozen by the first test, killed by the last."""
    web = WebProcess(tmp_path_factory.mktemp("victim") / "web.log", **QUICK)
    try:
        yield web.wait_ready()
    finally:
        web.send(signal.SIGCONT)
        web.kill()


@pytest.fixture
def limited(world: World, victim: WebProcess) -> World:
    world.key, world.secret = world.add_key(output_tokens_per_minute=LIMIT, concurrency=50)
    return world.wait_known(victim)


async def test_it_charges_a_process_that_froze_past_its_lease_once_in_total(
    limited: World, victim: WebProcess, upstream: ScriptedUpstream, valkey: "redis.Redis"
) -> None:
    running = await streams(victim.url, limited, 10, content=SCRIPT, max_tokens=100)
    await asyncio.sleep(0.7)
    victim.send(signal.SIGSTOP)
    await asyncio.to_thread(reaped, valkey, 10)
    assert len(parts(valkey, limited, 0)) == 10
    victim.send(signal.SIGCONT)
    assert Counter([await stream.ended() for stream in running]) == {"lease_lost": 10}
    idle(upstream, 1)
    eventually(lambda: len(finals(victim)) == 10)
    records = settled(valkey, limited, 10)
    said = finals(victim)
    for measure in ("input_tokens", "cached_input_tokens", "output_tokens"):
        assert charged(records, measure) == {key: record[measure] for key, record in said.items()}
    corrections = [record for record in records if record["part"] == 1]
    assert corrections, "it was reaped while tokens were on their way"
    assert valkey.keys("hr:m:*:concurrency") == []
    used = sum(record["output_tokens"] for record in said.values())
    assert debt(valkey, limited.key.pk, "output_tokens", LIMIT) <= used


async def test_it_settles_fifty_streams_of_a_killed_process_with_their_last_progress(
    limited: World, victim: WebProcess, upstream: ScriptedUpstream, valkey: "redis.Redis"
) -> None:
    running = await streams(victim.url, limited, 50, content=SCRIPT, max_tokens=100)
    await asyncio.sleep(0.7)
    least = progress(valkey)
    victim.kill()
    killed_at = time.monotonic()
    assert Counter([await stream.ended() for stream in running]) == {"cut": 50}
    idle(upstream, 1)
    await asyncio.to_thread(reaped, valkey, 50)
    records = settled(valkey, limited, 50)
    sent = upstream.stats()["tokens_by_rid"]
    assert len(least) == 50
    assert max(least.values()) > 0
    for record in records:
        assert record["status"] == "reaped", record
        assert least[record["request_id"]] <= record["output_tokens"] <= sent[record["upstream_id"]], record
        assert record["input_tokens"] > 0, record
    used = sum(record["output_tokens"] for record in records)
    owed = debt(valkey, limited.key.pk, "output_tokens", LIMIT)
    drained = (time.monotonic() - killed_at + 10) * LIMIT / 60
    assert used - drained <= owed <= used
    assert valkey.keys("hr:m:*:concurrency") == []


def finals(web: WebProcess) -> dict[str, dict[str, Any]]:
    """What the process itself said of its requests in the end."""
    return {record["request_id"]: record for record in web.records()}
