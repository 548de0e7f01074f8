"""A web process frozen past its lease: its requests cost what their clients received, and not a token more."""

import asyncio
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from headrace.gateway.tests.conftest import QUICK
from headrace_dev.testing.clients import Caller, streams
from headrace_dev.testing.invariants import charged, eventually, progress, reaped, settled
from headrace_dev.testing.upstream import ScriptedUpstream, prompt
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World
from routing.models import Route

TOKENS = 50
LONG = prompt(tokens=1000, interval_ms=10, prompt_tokens=100)
SLOW = prompt(tokens=TOKENS, interval_ms=40, prompt_tokens=100)


@pytest.fixture(scope="module", params=["uvicorn", "daphne"])
def frozen(
    request: pytest.FixtureRequest, django_db_setup: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WebProcess]:
    web = WebProcess(tmp_path_factory.mktemp("frozen") / "web.log", request.param, **QUICK)
    try:
        yield web.wait_ready()
    finally:
        web.send(signal.SIGCONT)
        web.kill()


@pytest.fixture
def doomed(django_db_setup: None, tmp_path: Path) -> Iterator[WebProcess]:
    web = WebProcess(tmp_path / "web.log", **QUICK)
    try:
        yield web.wait_ready()
    finally:
        web.kill()


@pytest.fixture(params=["sglang", "llamacpp"])
def served_by(request: pytest.FixtureRequest, upstream: ScriptedUpstream, doomed: WebProcess) -> World:
    """A model behind an engine of that kind."""
    upstream.reset()
    return World(upstream.url, engine=request.param).wait_known(doomed)


@pytest.fixture
def known(world: World, frozen: WebProcess) -> World:
    return world.wait_known(frozen)


async def freeze(web: WebProcess, upstream: ScriptedUpstream, valkey: "redis.Redis", requests: int) -> None:
    """Stop the process until all its requests are settled without it, and its upstream has said all to the kernel."""
    web.send(signal.SIGSTOP)
    await asyncio.to_thread(reaped, valkey, requests)
    await asyncio.to_thread(eventually, lambda: upstream.stats()["open"] == 0)


def labels(web: WebProcess) -> set[str]:
    """The names that clients gave to the requests that it has settled."""
    return {record["labels"].get("client_request_id", "") for record in web.records()}


@pytest.mark.parametrize("n", [1, 3])
async def test_a_stream_costs_what_its_client_received(
    n: int, frozen: WebProcess, known: World, upstream: ScriptedUpstream, valkey: "redis.Redis"
) -> None:
    running = await streams(frozen.url, known, 4, content=SLOW, max_tokens=TOKENS, n=n)
    await asyncio.to_thread(eventually, lambda: all(stream.events >= 15 * n for stream in running))
    await freeze(frozen, upstream, valkey, 4)
    frozen.send(signal.SIGCONT)
    assert Counter([await stream.ended() for stream in running]) == {"lease_lost": 4}
    records = await asyncio.to_thread(settled, valkey, known, 4)
    received = {stream.name: stream.tokens for stream in running}
    billed = Counter[str]()
    for record in records:
        billed[record["labels"]["client_request_id"]] += record["output_tokens"]
    assert billed == received
    assert max(received.values()) < n * TOKENS


@pytest.mark.parametrize("n", [1, 3])
async def test_a_whole_answer_that_is_not_given_costs_nothing_and_asked_again_is_paid_once(
    n: int, frozen: WebProcess, known: World, upstream: ScriptedUpstream, valkey: "redis.Redis"
) -> None:
    async def ask() -> Caller:
        return await (await Caller.to(frozen.url)).ask(known, content=SLOW, max_tokens=TOKENS, n=n)

    stays, leaves = await ask(), await ask()
    await asyncio.to_thread(eventually, lambda: upstream.stats()["open"] == 2)
    await freeze(frozen, upstream, valkey, 2)
    await leaves.leave()
    frozen.send(signal.SIGCONT)
    assert ((await stays.head()).status, await stays.error()) == (503, "lease_lost")
    await stays.leave()
    records = await asyncio.to_thread(settled, valkey, known, 2)
    assert charged(records, "output_tokens") == charged(records, "input_tokens") == Counter()
    assert {record["part"] for record in records} == {0}

    again = await ask()
    assert (await again.head()).status == 200
    await again.body()
    await again.leave()
    records = await asyncio.to_thread(settled, valkey, known, 3)
    assert charged(records, "output_tokens").total() == n * TOKENS
    assert charged(records, "input_tokens").total() == 100


async def test_a_whole_answer_of_a_killed_process_costs_nothing(
    upstream: ScriptedUpstream, valkey: "redis.Redis", doomed: WebProcess, served_by: World
) -> None:
    """Also one that is put together from a stream, of which the process knows how far it was."""
    caller = await (await Caller.to(doomed.url)).ask(served_by, content=LONG, max_tokens=1000)
    await asyncio.to_thread(eventually, lambda: len(progress(valkey)) == 1)
    told = next(iter(valkey.scan_iter("hr:hold:*")))
    lease = valkey.hget(told, "expires")
    await asyncio.to_thread(eventually, lambda: valkey.hget(told, "expires") != lease)  # it was told of again
    doomed.kill()
    await caller.wait_closed()
    await caller.leave()
    await asyncio.to_thread(reaped, valkey, 1)
    [record] = await asyncio.to_thread(settled, valkey, served_by, 1)
    assert (record["status"], record["input_tokens"], record["output_tokens"]) == ("reaped", 0, 0)


async def test_a_client_that_left_while_the_process_stood_still_pays_for_what_it_had(
    frozen: WebProcess, known: World, upstream: ScriptedUpstream, valkey: "redis.Redis"
) -> None:
    [running] = await streams(frozen.url, known, 1, content=SLOW, max_tokens=TOKENS)
    await asyncio.to_thread(eventually, lambda: running.events >= 15)
    await freeze(frozen, upstream, valkey, 1)
    assert running.following is not None
    running.following.cancel()
    await asyncio.wait({running.following})
    frozen.send(signal.SIGCONT)
    await asyncio.to_thread(eventually, lambda: running.name in labels(frozen))
    records = await asyncio.to_thread(settled, valkey, known, 1)
    assert charged(records, "output_tokens").total() == running.tokens < TOKENS


@pytest.fixture
def impatient(known: World, frozen: WebProcess) -> World:
    Route.objects.filter(pk=known.route.pk).update(between_events_timeout=0.6)
    known.wait_followed(frozen)
    return known


async def test_its_own_standstill_is_no_silence_of_its_upstream(
    frozen: WebProcess, impatient: World, upstream: ScriptedUpstream, valkey: "redis.Redis"
) -> None:
    """It lasts longer than the route allows between events, and no reaper came meanwhile."""
    [running] = await streams(frozen.url, impatient, 1, content=SLOW, max_tokens=TOKENS)
    frozen.send(signal.SIGSTOP)
    await asyncio.to_thread(eventually, lambda: upstream.stats()["open"] == 0)
    frozen.send(signal.SIGCONT)
    assert await running.ended() == "DONE"
    [record] = await asyncio.to_thread(settled, valkey, impatient, 1)
    assert record["output_tokens"] == running.tokens == TOKENS
