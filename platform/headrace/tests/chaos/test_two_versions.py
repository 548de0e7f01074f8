"""This version beside the one before it, as in an upgrade: each serves, dies, and is settled by the other.

CHAOS_PREVIOUS names the other version, a revision of the repository (HEAD~1). Where there is no history, this version
stands for it too.
"""

import asyncio
import os
import signal
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
import redis

from headrace_dev.testing.clients import Stream, streams
from headrace_dev.testing.invariants import charged, eventually, progress, reaped, settled
from headrace_dev.testing.stores import Services
from headrace_dev.testing.upstream import prompt
from headrace_dev.testing.web import ROOT, WebProcess
from headrace_dev.testing.world import World, at_rest

pytestmark = pytest.mark.chaos
LEASE_SECONDS = 2.0
EACH = 5
SLOW = prompt(tokens=100, interval_ms=30, prompt_tokens=100)
_REAP = """
import time, django, redis
from django.conf import settings
django.setup()
from billing.settlement import reap_expired
done, until = 0, time.monotonic() + 30
with redis.Redis.from_url(settings.REDIS_URL) as client:
    while done < {number} and time.monotonic() < until:
        done += reap_expired(client, lease_seconds={lease})
        time.sleep(0.1)
print(done)
"""


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which Python runs the other version's code."""
    folder = tmp_path_factory.mktemp("previous")
    revision = os.environ.get("CHAOS_PREVIOUS", "HEAD~1")
    archive = subprocess.run(["git", "-C", str(ROOT), "archive", revision], capture_output=True, check=False)
    if archive.returncode == 0:
        with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
            files.extractall(folder, filter="data")
    else:
        folder = ROOT
    print(f"the other version is {revision if archive.returncode == 0 else 'this one: there is no history'}")
    return {"PYTHONPATH": os.pathsep.join([str(folder), str(folder / "platform")]), "PYTHONSAFEPATH": "1"}


@pytest.fixture
def webs(world: World, previous: dict[str, str], tmp_path: Path) -> Iterator[dict[str, WebProcess]]:
    lease = {"HEADRACE_LEASE_SECONDS": str(LEASE_SECONDS), "HEADRACE_BREAKER_FAILURES": "0"}
    webs = {
        "this": WebProcess(tmp_path / "this.log", **lease),
        "previous": WebProcess(tmp_path / "previous.log", **lease, **previous),
    }
    try:
        for web in webs.values():
            web.wait_ready(300)
        yield webs
    finally:
        for web in webs.values():
            web.kill()


@pytest.fixture
def valkey(services: Services) -> Iterator["redis.Redis"]:
    with redis.Redis.from_url(services.redis_url) as client:
        yield client
        client.flushall()


async def run_on_both(webs: dict[str, WebProcess], world: World) -> dict[str, list[Stream]]:
    for web in webs.values():
        await asyncio.to_thread(world.wait_known, web)
    asked = [streams(web.url, world, EACH, content=SLOW, max_tokens=100) for web in webs.values()]
    running = dict(zip(webs, await asyncio.gather(*asked), strict=True))
    await asyncio.to_thread(
        eventually, lambda: all(stream.tokens >= 40 for each in running.values() for stream in each)
    )
    return running


async def test_what_either_leaves_behind_is_settled_by_the_other_once(
    webs: dict[str, WebProcess], world: World, previous: dict[str, str], valkey: "redis.Redis"
) -> None:
    running = await run_on_both(webs, world)
    least = progress(valkey)
    for web in webs.values():
        web.kill()
    ends = Counter([await stream.ended() for each in running.values() for stream in each])
    assert ends == {"cut": 2 * EACH}
    reaping = _REAP.format(number=2 * EACH, lease=LEASE_SECONDS)
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", reaping], env={**os.environ, **previous}, capture_output=True, text=True
    )
    assert done.stdout.strip() == str(2 * EACH), done.stderr
    records = await asyncio.to_thread(settled, valkey, world, 2 * EACH)
    received = {stream.name: stream.tokens for each in running.values() for stream in each}
    for record in records:
        most = received[record["labels"]["client_request_id"]]
        assert least[record["request_id"]] <= record["output_tokens"] <= most, record


async def test_what_either_says_late_is_taken_by_the_other_once(
    webs: dict[str, WebProcess], world: World, valkey: "redis.Redis"
) -> None:
    running = await run_on_both(webs, world)
    for web in webs.values():
        web.send(signal.SIGSTOP)
    await asyncio.to_thread(reaped, valkey, 2 * EACH, lease_seconds=LEASE_SECONDS)
    for web in webs.values():
        web.send(signal.SIGCONT)
    for each in running.values():
        for stream in each:
            await stream.ended()
    records = await asyncio.to_thread(settled, valkey, world, 2 * EACH)
    outputs = charged(records, "output_tokens")
    names = {record["request_id"]: record["labels"]["client_request_id"] for record in records}
    for stream in running["this"]:
        [request_id] = [one for one, name in names.items() if name == stream.name]
        assert outputs[request_id] == stream.tokens
    at_rest(valkey)
