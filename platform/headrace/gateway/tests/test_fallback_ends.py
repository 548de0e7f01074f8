"""However a request ends that went from one upstream to another: it is settled once, and nothing stays."""

import asyncio
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
import redis

from headrace.gateway.tests.calling import Hosted, Place
from headrace.gateway.tests.conftest import QUICK
from headrace_dev.testing.clients import Caller
from headrace_dev.testing.faults import RedisProxy
from headrace_dev.testing.invariants import eventually, reaped, settled
from headrace_dev.testing.stores import Services
from headrace_dev.testing.upstream import ScriptedUpstream
from headrace_dev.testing.web import WebProcess
from tenants.meters import holds
from tenants.meters.scripts import MOVE

NOTHING = '{"input_tokens":0,"cached_input_tokens":0,"output_tokens":0,"reasoning_tokens":0}'


@pytest.fixture(scope="module")
def proxy(services: Services) -> Iterator[RedisProxy]:
    with RedisProxy(services.redis_url) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def web(committed: None, proxy: RedisProxy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebProcess]:
    process = WebProcess(tmp_path_factory.mktemp("web") / "web.log", **QUICK, REDIS_URL=proxy.url)
    try:
        yield process.wait_ready()
    finally:
        process.kill()


@pytest.fixture(scope="module")
def second() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream(tokens=5, interval_ms=1) as second:
        yield second


@pytest.fixture
def spot(web: WebProcess, engine: ScriptedUpstream, second: ScriptedUpstream) -> Place:
    """A model at two targets."""
    second.reset()
    spot = Place(web, engine)
    _, spot.world.secret = spot.world.add_key(concurrency=5, output_tokens_per_minute=60_000)
    spot.wait_known(secret=spot.world.secret)
    spot.world.model = spot.add_route([spot.upstream.url], [second.url])
    return spot


async def ask(spot: Place, *, stream: bool) -> Caller:
    return await (await Caller.to(spot.web.url)).ask(spot.world, stream=stream)


def holds_of(valkey: "redis.Redis") -> list[dict[str, Any]]:
    found: list[Any] = [valkey.hget(key, "record") for key in valkey.scan_iter("hr:hold:*")]
    return [json.loads(record) for record in found if record]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("when", ["in the first", "in the second"])
async def test_its_client_leaves_in_an_attempt(
    spot: Place, second: ScriptedUpstream, valkey: "redis.Redis", when: str, stream: bool
) -> None:
    model = spot.world.model
    spot.upstream.script(**({"stall_after": 0} if when == "in the first" else {"status": 500}))
    second.script(stall_after=0)
    caller = await ask(spot, stream=stream)
    attempts = 1 if when == "in the first" else 2
    busy = second if attempts == 2 else spot.upstream
    await asyncio.to_thread(eventually, lambda: busy.stats()["open"] == 1)
    await caller.leave()
    await asyncio.to_thread(busy.wait_until_idle, 4)
    [record] = await asyncio.to_thread(settled, valkey, spot.world, 1)
    assert (record["status"], record["fallback"]) == ("cancelled", attempts - 1)
    assert record["target"] == f"{model.lower()}-{attempts - 1}"
    assert record["output_tokens"] == 0
    assert second.stats()["started"] == attempts - 1


async def test_its_client_leaves_while_it_moves(
    spot: Place, second: ScriptedUpstream, proxy: RedisProxy, valkey: "redis.Redis"
) -> None:
    """The move is done and its reply on the way."""
    spot.upstream.script(status=500)
    proxy.lose(MOVE, silent=True)
    caller = await ask(spot, stream=True)
    await asyncio.to_thread(eventually, lambda: any(hold["fallback"] == 1 for hold in holds_of(valkey)))
    await caller.leave()
    [record] = await asyncio.to_thread(settled, valkey, spot.world, 1)
    proxy.mend()
    assert (record["status"], record["output_tokens"]) == ("cancelled", 0)
    assert second.stats()["started"] == 0


async def test_a_move_whose_reply_is_lost_is_asked_for_again(
    spot: Place, second: ScriptedUpstream, proxy: RedisProxy, valkey: "redis.Redis"
) -> None:
    model = spot.world.model
    spot.upstream.script(status=500)
    proxy.lose(MOVE)
    answer = await asyncio.to_thread(spot.chat, model=model)
    proxy.mend()
    assert (answer.status, answer.record["fallback"]) == (200, 1)
    [record] = await asyncio.to_thread(settled, valkey, spot.world, 1)
    assert record["output_tokens"] == 5


async def test_it_ends_where_redis_is_gone_between_its_attempts(
    spot: Place, second: ScriptedUpstream, proxy: RedisProxy, valkey: "redis.Redis"
) -> None:
    spot.upstream.script(status=500, first_ms=300)
    caller = await ask(spot, stream=False)
    await asyncio.to_thread(eventually, lambda: spot.upstream.stats()["open"] == 1)
    proxy.cut()
    head = await caller.head()
    assert (head.status, await caller.error()) == (503, "redis_unavailable")
    proxy.mend()
    await caller.leave()
    [record] = await asyncio.to_thread(settled, valkey, spot.world, 1)
    assert record["status"] == "error"
    assert second.stats()["started"] == 0


async def test_it_ends_when_a_reaper_has_settled_it_between_its_attempts(
    spot: Place, second: ScriptedUpstream, valkey: "redis.Redis"
) -> None:
    spot.upstream.script(status=500, first_ms=400)
    caller = await ask(spot, stream=True)
    await asyncio.to_thread(eventually, lambda: len(holds_of(valkey)) == 1)
    [key] = valkey.scan_iter("hr:hold:*")
    request_id = key.decode().removeprefix("hr:hold:")
    record: Any = valkey.hget(key, "record")
    event = json.dumps(json.loads(record) | {"status": "reaped"}).encode()

    def reap() -> bool:
        valkey.hset(key, "expires", 1)
        return holds.reap(valkey, request_id=request_id, used={}, event=event, memory=NOTHING) == "settled"

    eventually(reap)
    head = await caller.head()
    assert (head.status, await caller.error()) == (503, "lease_lost")
    await caller.leave()
    [settlement] = await asyncio.to_thread(settled, valkey, spot.world, 1)
    assert (settlement["status"], settlement["output_tokens"]) == ("reaped", 0)
    assert second.stats()["started"] == 0


def test_it_is_charged_at_the_price_of_the_target_that_served(spot: Place, valkey: "redis.Redis") -> None:
    model = spot.world.model
    prices = [
        spot.world.price(rate, rate, rate, target=f"{model.lower()}-{number}").version
        for number, rate in enumerate(("1", "7"))
    ]
    spot.upstream.script(drop_after=3)
    answer = spot.chat(model=model)
    record = answer.record
    assert (answer.status, record["fallback"], record["price"]) == (200, 1, prices[1])
    assert Decimal(record["cost"]) == (record["input_tokens"] + record["output_tokens"]) * Decimal(7) / 10**6
    spot.upstream.script()
    record = spot.chat(model=model).record
    assert (record["fallback"], record["price"]) == (0, prices[0])
    assert Decimal(record["cost"]) == (record["input_tokens"] + record["output_tokens"]) / Decimal(10**6)
    settled(valkey, spot.world, 2)


def test_it_asks_a_target_for_no_more_than_was_held(spot: Place, second: ScriptedUpstream) -> None:
    """The first target's window bounds what an answer may have; so much is held."""
    model = spot.add_route(
        Hosted(spot.upstream.url, context_window=200), Hosted(second.url, context_window=500), context_window=10_000
    )
    spot.upstream.script(status=500)
    answer = spot.chat("x" * 350, model=model)
    assert (answer.status, answer.record["fallback"]) == (200, 1)
    asked = [upstream.requests()[0]["body"]["max_completion_tokens"] for upstream in (spot.upstream, second)]
    assert asked[0] == asked[1] < 200


def test_it_passes_over_a_target_that_cannot_take_the_request(spot: Place, second: ScriptedUpstream) -> None:
    small = Hosted(spot.upstream.url, context_window=100)
    model = spot.add_route(small, [second.url])
    answer = spot.chat("x" * 3500, model=model)
    assert (answer.status, answer.record["fallback"], spot.upstream.requests()) == (200, 0, [])
    assert answer.record["target"] == f"{model.lower()}-1"
    # A field that only the engine of the second target takes.
    assert spot.chat(model=model, top_k=5).record["target"] == f"{model.lower()}-1"
    alone = spot.add_route(Hosted(spot.upstream.url, context_window=100))
    refused = [spot.chat("x" * 3500, model=alone), spot.chat(model=alone, top_k=5)]
    assert [answer.status for answer in refused] == [400, 400]
    assert [answer.error["code"] for answer in refused] == ["context_length_exceeded", "unsupported_parameter"]
    assert spot.upstream.requests() == []


async def test_a_killed_process_leaves_one_record_at_the_second_target(
    spot: Place, second: ScriptedUpstream, valkey: "redis.Redis"
) -> None:
    """The last test: it takes the web process with it."""
    model = spot.world.model
    spot.upstream.script(status=500)
    second.script(stall_after=0)
    callers = [await ask(spot, stream=number > 1) for number in range(4)]
    await asyncio.to_thread(eventually, lambda: second.stats()["open"] == 4)
    spot.web.kill()
    for caller in callers:
        await caller.leave()
    await asyncio.to_thread(reaped, valkey, 4)
    for record in await asyncio.to_thread(settled, valkey, spot.world, 4):
        assert (record["status"], record["fallback"], record["target"]) == ("reaped", 1, f"{model.lower()}-1")
        assert (record["input_tokens"], record["output_tokens"]) == (0, 0)
    assert valkey.keys("hr:m:*:concurrency") == []
