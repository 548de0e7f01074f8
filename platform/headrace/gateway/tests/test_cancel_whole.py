"""The client of an answer that is not streamed leaves: the engine is told to stop, and what it took is billed."""

import asyncio
import time

import httpx
import pytest
import redis

from engines.models import Pool, Provider
from headrace_dev.testing.clients import Caller
from headrace_dev.testing.invariants import eventually, idle, settled
from headrace_dev.testing.upstream import ScriptedUpstream, prompt
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World
from routing.models import Target


async def asking(web: WebProcess, world: World, upstream: ScriptedUpstream, *, n: int = 1, **script: object) -> Caller:
    """A whole answer under way."""
    caller = await Caller.to(web.url)
    before = upstream.stats()["started"]
    await caller.ask(world, content=prompt(**script), n=n)
    eventually(lambda: upstream.stats()["started"] > before)
    return caller


async def test_it_bills_what_the_aborted_engine_says(
    quick_web: WebProcess, world: World, upstream: ScriptedUpstream, valkey: "redis.Redis"
) -> None:
    world.wait_known(quick_web)
    caller = await asking(quick_web, world, upstream, tokens=1000, interval_ms=20)
    await asyncio.sleep(0.3)
    await caller.leave()
    idle(upstream, 1)
    [event] = settled(valkey, world, 1)
    [seen] = upstream.requests()
    assert seen["how"] == "aborted"
    assert (event["status"], event["finish_reason"], event["usage_source"]) == ("cancelled", "abort", "reported")
    assert event["output_tokens"] == seen["tokens_generated"] > 0
    assert event["input_tokens"] > 0


async def test_it_closes_what_cannot_be_aborted_by_name(
    quick_web: WebProcess, world: World, upstream: ScriptedUpstream, valkey: "redis.Redis"
) -> None:
    """The copies of n > 1 end with their connection; what they took is known from their stream."""
    world.wait_known(quick_web)
    caller = await asking(quick_web, world, upstream, n=2, tokens=1000, interval_ms=20)
    eventually(lambda: upstream.requests()[-1]["tokens_sent"] >= 20)
    await caller.leave()
    idle(upstream, 5)
    [event] = settled(valkey, world, 1)
    [seen] = upstream.requests()
    assert (event["status"], event["usage_source"]) == ("cancelled", "reported")
    assert event["input_tokens"] > 0
    assert 10 <= event["output_tokens"] <= seen["tokens_generated"]
    assert event["output_tokens"] % 2 == 0


@pytest.fixture
def engine(request: pytest.FixtureRequest, world: World, upstream: ScriptedUpstream) -> str:
    """What the world's upstream is: another engine, or a hosted provider."""
    if request.param != "hosted":
        Pool.objects.filter(name=world.name).update(engine=request.param)
        return str(request.param)
    provider = Provider.objects.create(name=f"{world.name}-p", base_url=f"{upstream.url}/v1")
    Target.objects.filter(route=world.route).update(pool=None, provider=provider, upstream_model="hosted")
    return "hosted"


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("engine", ["vllm", "hosted"], indirect=True)
async def test_it_bills_what_was_generated_until_its_client_left(
    quick_web: WebProcess, world: World, upstream: ScriptedUpstream, valkey: "redis.Redis", engine: str, n: int
) -> None:
    """Neither all that was allowed nor nothing, where no abort tells what an engine took."""
    world.wait_known(quick_web)
    eventually(lambda: is_streamed(quick_web, world, upstream))
    caller = await asking(quick_web, world, upstream, n=n, tokens=1000, interval_ms=20)
    eventually(lambda: upstream.requests()[-1]["tokens_sent"] >= 20)
    await caller.leave()
    idle(upstream, 5)
    seen = upstream.requests()[-1]
    events = settled(valkey, world, len(upstream.requests()))
    [event] = [each for each in events if each["status"] == "cancelled"]
    assert event["input_tokens"] > 0
    assert 10 <= event["output_tokens"] <= 2 * seen["tokens_generated"] < 200


def is_streamed(web: WebProcess, world: World, upstream: ScriptedUpstream) -> bool:
    """Whether the web process knows by now which engine it is."""
    body = world.body(prompt(tokens=1))
    assert httpx.post(f"{web.url}/v1/chat/completions", json=body, headers=world.headers(), trust_env=False).is_success
    return upstream.requests()[-1]["stream"] is True


@pytest.mark.parametrize("engine", ["hosted"], indirect=True)
async def test_it_bills_by_time_what_a_provider_wrote_unseen(
    quick_web: WebProcess, world: World, upstream: ScriptedUpstream, valkey: "redis.Redis", engine: str
) -> None:
    """One that sends nothing before the end, having refused to stream: 100 tokens a second."""
    world.wait_known(quick_web)
    eventually(lambda: is_streamed(quick_web, world, upstream))
    refusal = {"error": {"message": "Your organization must be verified to stream this model.", "param": "stream"}}
    upstream.scripts({"status": 400, "body": refusal}, {"tokens": 1000, "first_ms": 60_000})
    caller = await Caller.to(quick_web.url)
    began = time.monotonic()
    await caller.ask(world, content="Hello", max_tokens=1000)
    eventually(lambda: upstream.requests()[-1]["stream"] is False)
    await asyncio.sleep(0.5)
    await caller.leave()
    events = settled(valkey, world, len(upstream.requests()) - 1)
    seconds = time.monotonic() - began
    [event] = [each for each in events if each["status"] == "cancelled"]
    assert 50 <= event["output_tokens"] <= 100 * seconds + 1
    assert event["usage_source"] == "estimated"


async def test_it_ends_one_that_has_not_begun_to_answer(
    quick_web: WebProcess, world: World, upstream: ScriptedUpstream, valkey: "redis.Redis"
) -> None:
    world.wait_known(quick_web)
    for script in ({"first_ms": 60_000}, {"headers_only": True}):
        caller = await asking(quick_web, world, upstream, **script)
        await caller.leave(reset=True)
        idle(upstream, 1)
    events = settled(valkey, world, 2)
    assert {event["status"] for event in events} == {"cancelled"}
    assert all(event["input_tokens"] > 0 == event["output_tokens"] for event in events)  # the prompt was read for it


async def test_it_drops_an_engine_that_neither_aborts_nor_notices(
    quick_web: WebProcess, world: World, upstream: ScriptedUpstream, valkey: "redis.Redis"
) -> None:
    """Its slot is free at once all the same, and a metric counts it."""
    world.wait_known(quick_web)
    before = ignored(quick_web)
    deaf = {"tokens": 300, "interval_ms": 20, "ignore_close": True, "ignore_abort": True}
    whole = await asking(quick_web, world, upstream, **deaf)
    stream = await Caller.to(quick_web.url)
    await stream.ask(world, content=prompt(**deaf), stream=True)
    await stream.event()
    began = time.monotonic()
    await whole.leave()
    await stream.leave()
    records = settled(valkey, world, 2)
    assert time.monotonic() - began < 5
    assert upstream.stats()["open"] == 2  # it works on, for nobody
    assert {record["status"] for record in records} == {"cancelled"}
    eventually(lambda: all(seen["client_left"] for seen in upstream.requests()))
    eventually(lambda: ignored(quick_web) - before == 2)


def ignored(web: WebProcess) -> float:
    """Aborts that the engine took and did not obey."""
    return metric(web, 'headrace_upstream_aborts_total{outcome="ignored"}')


def metric(web: WebProcess, name: str) -> float:
    lines = httpx.get(f"{web.url}/metrics", trust_env=False).text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))
