"""New requests follow what the collector says of replicas, and the collector what became of real requests."""

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator
from functools import partial

import httpx
import pytest
import redis

from engines.load.figures import KEY, Fleet, State, decode
from engines.models import Replica
from headrace.gateway.tests.calling import Place, metric
from headrace_dev.testing.collecting import collected
from headrace_dev.testing.upstream import ScriptedUpstream
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World


@pytest.fixture
def collector(committed: None) -> Iterator[None]:
    with collected():
        yield


@pytest.fixture
def second() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream(tokens=5, interval_ms=1) as upstream:
        yield upstream


def fleet(valkey: "redis.Redis") -> Fleet:
    text = valkey.get(KEY)
    assert text is None or isinstance(text, bytes)
    return decode(text) if text else Fleet(0)


def wait(holds: Callable[[], bool], valkey: "redis.Redis", seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, fleet(valkey)
        time.sleep(0.1)


def wait_state(valkey: "redis.Redis", name: str, state: State, *webs: WebProcess) -> None:
    """Wait until the collector says that the replica is in `state`, and each web process has read it."""

    def holds() -> bool:
        report = fleet(valkey).replicas.get(name)
        return report is not None and report.state is state

    wait(holds, valkey)
    pool, _, replica = name.partition("/")
    for web in webs:
        wait(partial(is_ready, web, pool, replica, state is State.READY), valkey)


def is_ready(web: WebProcess, pool: str, replica: str, expected: bool) -> bool:
    return metric(web, "headrace_replica_ready", pool=pool, replica=replica) == expected


def ask(web: WebProcess, world: World, count: int) -> list[int]:
    async def one(client: httpx.AsyncClient) -> int:
        body = world.body(stream=True)
        answer = await client.post(f"{web.url}/v1/chat/completions", json=body, headers=world.headers())
        return answer.status_code

    async def run() -> list[int]:
        async with httpx.AsyncClient(timeout=20, trust_env=False) as client:
            return [await one(client) for _ in range(count)]

    return asyncio.run(run())


def test_it_sends_nothing_to_a_replica_that_drains_or_fails(
    gateway: WebProcess,
    upstream: ScriptedUpstream,
    second: ScriptedUpstream,
    world: World,
    valkey: "redis.Redis",
    collector: None,
) -> None:
    pool = Replica.objects.get(url=upstream.url).pool
    first, other = f"{pool.name}/r1", f"{pool.name}/r2"
    Replica.objects.create(pool=pool, name="r2", url=second.url)
    world.route.policy = "round_robin"
    world.route.save()
    world.wait_followed(gateway)
    wait_state(valkey, first, State.READY, gateway)
    wait_state(valkey, other, State.READY, gateway)
    assert set(ask(gateway, world, 8)) == {200}
    assert len(upstream.requests()) > 0
    assert len(second.requests()) > 0

    Replica.objects.filter(pool=pool, name="r1").update(enabled=False)
    wait_state(valkey, first, State.DRAINING, gateway)
    before = len(upstream.requests())
    assert set(ask(gateway, world, 6)) == {200}
    assert len(upstream.requests()) == before

    Replica.objects.filter(pool=pool, name="r1").update(enabled=True)
    wait_state(valkey, first, State.READY, gateway)
    second.script(status=500)  # its health stays well
    ask(gateway, world, 12)
    wait_state(valkey, other, State.EJECTED, gateway)
    before = len(second.requests())
    assert set(ask(gateway, world, 8)) == {200}
    assert len(second.requests()) == before


def test_it_forgets_in_every_process_what_an_engine_held_that_was_started_anew(
    quick_webs: dict[str, WebProcess], valkey: "redis.Redis", collector: None
) -> None:
    with ScriptedUpstream(tokens=5, interval_ms=1) as before:
        web, *others = quick_webs.values()
        place = Place(web, before)
        sites, replica = [place, *map(place.at, others)], f"{place.world.name}/r1"
        texts = {
            site.web.url: [secrets.token_hex(8) + " water runs down the hill" * 100 for _ in range(40)]
            for site in sites
        }
        for site in sites:
            site.wait_known(site.world.model)
            for text in texts[site.web.url]:
                site.chat(text)
            assert predicted_by(site, text) > 400
        wait_state(valkey, replica, State.READY, *quick_webs.values())
        before.kill()
        with ScriptedUpstream(tokens=5, interval_ms=1, port=before.port):
            wait(lambda: fleet(valkey).replicas[replica].started > 0, valkey)
            for site in sites:
                # Another text each time: what was asked for is in the cache again.
                wait(partial(has_forgotten, site, texts[site.web.url]), valkey)
                text = texts[site.web.url].pop()
                assert predicted_by(site, text) == 0
                assert predicted_by(site, text) > 400


def has_forgotten(site: Place, texts: list[str]) -> bool:
    return predicted_by(site, texts.pop()) == 0


def predicted_by(site: Place, text: str) -> float:
    """How many of the prompt's tokens the site's process believes to be in its replica's cache, as it sends it."""
    name, which = "headrace_prefix_tokens_total", {"class": "predicted", "model": site.world.model}
    before = site.metric(name, **which)
    site.chat(text)
    return site.metric(name, **which) - before
