"""Redis did it and its reply never arrived, or it is out of reach: nothing is charged twice, and no hold is left."""

import asyncio
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from billing.settlement import Remembered
from headrace.gateway.tests.conftest import QUICK
from headrace_dev.testing.clients import Caller, streams
from headrace_dev.testing.faults import RedisProxy
from headrace_dev.testing.invariants import debt, events, eventually, parts, settled, warnings
from headrace_dev.testing.stores import Services
from headrace_dev.testing.upstream import prompt
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World, at_rest
from tenants.meters import holds
from tenants.meters.scripts import ADMIT, RENEW, SETTLE

SHORT = prompt(tokens=5, interval_ms=5)
LONG = prompt(tokens=40, interval_ms=25)
LIMIT = 6  # requests a minute: a tenth of one drains in a second


@pytest.fixture(scope="module")
def proxy(services: Services) -> Iterator[RedisProxy]:
    with RedisProxy(services.redis_url) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def far(proxy: RedisProxy, django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebProcess]:
    """A web process whose Redis is behind the proxy."""
    log = tmp_path_factory.mktemp("far") / "web.log"
    web = WebProcess(log, **QUICK, REDIS_URL=proxy.url)
    try:
        yield web.wait_ready()
    finally:
        web.kill()


@pytest.fixture
def limited(world: World, far: WebProcess, proxy: RedisProxy) -> Iterator[World]:
    world.key, world.secret = world.add_key(requests_per_minute=LIMIT, concurrency=5, output_tokens_per_minute=10**6)
    yield world.wait_known(far)
    proxy.mend()


async def status(web: WebProcess, world: World) -> int:
    caller = await (await Caller.to(web.url)).ask(world, content=SHORT)
    answer = await caller.head()
    await caller.leave()
    return answer.status


def requests_taken(valkey: "redis.Redis", world: World) -> float:
    return debt(valkey, world.key.pk, "requests", LIMIT)


@pytest.mark.parametrize("silent", [False, True])
async def test_it_admits_once_though_the_reply_was_lost(
    far: WebProcess, limited: World, proxy: RedisProxy, valkey: "redis.Redis", silent: bool
) -> None:
    """The second try is told what the first one got."""
    proxy.lose(ADMIT, silent=silent)
    assert await status(far, limited) == 200
    assert proxy.lost[ADMIT.sha] == 1
    settled(valkey, limited, 1)
    assert 0 < requests_taken(valkey, limited) <= 1


async def test_it_is_told_where_a_reaper_was_before_its_second_try(
    far: WebProcess, limited: World, proxy: RedisProxy, valkey: "redis.Redis"
) -> None:
    """As when the process stood still before it heard that its request was admitted."""
    proxy.lose(ADMIT, silent=True)
    caller = await (await Caller.to(far.url)).ask(limited, content=SHORT)
    await asyncio.to_thread(eventually, lambda: valkey.zcard(holds.HOLDS) == 1)
    [key] = valkey.scan_iter("hr:hold:*")
    request_id = key.decode().removeprefix("hr:hold:")
    record: Any = valkey.hget(key, "record")
    valkey.hset(key, "expires", 1)
    nothing = json.dumps(dict.fromkeys(Remembered.__struct_fields__, 0))
    assert holds.reap(valkey, request_id=request_id, used={}, event=record, memory=nothing) == "settled"
    assert ((await caller.head()).status, await caller.error()) == (503, "lease_lost")
    await caller.leave()
    [settlement] = await asyncio.to_thread(settled, valkey, limited, 1)
    assert (settlement["status"], settlement["output_tokens"]) == ("abandoned", 0)


@pytest.mark.parametrize("silent", [False, True])
async def test_it_takes_back_what_was_taken_for_a_request_it_refused(
    far: WebProcess, limited: World, proxy: RedisProxy, valkey: "redis.Redis", silent: bool
) -> None:
    """Both replies are lost: the request is refused, and its hold does not wait for a reaper."""
    proxy.lose(ADMIT, 2, silent=silent)
    assert await status(far, limited) == 503
    assert proxy.lost[ADMIT.sha] == 2
    at_rest(valkey)
    assert events(valkey, limited) == []
    assert requests_taken(valkey, limited) == 0


@pytest.mark.parametrize("replies", [1, 2, 6])
async def test_it_settles_once_however_many_replies_are_lost(
    far: WebProcess, limited: World, proxy: RedisProxy, valkey: "redis.Redis", replies: int, services: Services
) -> None:
    proxy.lose(SETTLE, replies, silent=replies == 2)
    [stream] = await streams(far.url, limited, 1, content=SHORT)
    assert await stream.ended() == "DONE"
    [record] = settled(valkey, limited, 1)
    eventually(lambda: proxy.lost[SETTLE.sha] == replies)  # those after the second are the spool's
    eventually(lambda: not spooled(services))
    assert events(valkey, limited) == [record]
    assert record["output_tokens"] == 5
    assert 0 < requests_taken(valkey, limited) <= 1


async def test_it_says_the_end_though_its_settlement_is_known_late(
    far: WebProcess, limited: World, proxy: RedisProxy, valkey: "redis.Redis"
) -> None:
    """Redis has settled it, its process waits to hear so, and a renewal is told that the hold has ended."""
    for _ in range(3):
        proxy.lose(SETTLE, 2, silent=True)
        [stream] = await streams(far.url, limited, 1, content=prompt(tokens=2))
        assert await stream.ended() == "DONE"
        assert proxy.lost[SETTLE.sha] == 2
    assert {record["status"] for record in settled(valkey, limited, 3)} == {"ok"}


async def test_it_goes_on_when_renewals_are_lost(
    far: WebProcess, limited: World, proxy: RedisProxy, valkey: "redis.Redis"
) -> None:
    before = len(warnings(far))
    proxy.lose(RENEW, 4)
    running = await streams(far.url, limited, 3, content=prompt(tokens=60, interval_ms=30))
    assert {await stream.ended() for stream in running} == {"DONE"}
    assert proxy.lost[RENEW.sha] == 4
    assert {record["status"] for record in settled(valkey, limited, 3)} == {"ok"}
    assert len(warnings(far)) - before <= 4


async def test_it_spools_while_redis_is_away_and_delivers_when_it_is_back(
    far: WebProcess, limited: World, proxy: RedisProxy, valkey: "redis.Redis", services: Services
) -> None:
    running = await streams(far.url, limited, 4, content=LONG)
    proxy.cut()
    assert {await stream.ended() for stream in running} == {"DONE"}
    eventually(lambda: sum(len(file.read_bytes().splitlines()) for file in spooled(services)) == 4)
    assert all(file.stat().st_mode & 0o077 == 0 for file in spooled(services))
    assert parts(valkey, limited, 0) == []
    proxy.mend()
    settled(valkey, limited, 4)
    eventually(lambda: not spooled(services))


@pytest.mark.usefixtures("quick_webs")
async def test_it_leaves_its_spool_to_any_process_of_the_home(
    far: WebProcess,
    limited: World,
    proxy: RedisProxy,
    valkey: "redis.Redis",
    services: Services,
) -> None:
    """The last test of this process: it is killed while its settlements wait."""
    running = await streams(far.url, limited, 4, content=LONG)
    proxy.cut()
    assert {await stream.ended() for stream in running} == {"DONE"}
    eventually(lambda: sum(len(file.read_bytes().splitlines()) for file in spooled(services)) == 4)
    await asyncio.sleep(1.2)
    assert spooled(services), "a living process keeps its own file"
    far.send(signal.SIGKILL)
    records = settled(valkey, limited, 4)
    assert {(record["status"], record["output_tokens"]) for record in records} == {("ok", 40)}
    eventually(lambda: not spooled(services))


def spooled(services: Services) -> list[Path]:
    return list((services.home / "spool").glob("*.jsonl"))
