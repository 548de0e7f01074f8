"""A stream's client leaves: at any moment the upstream is freed within a second, and the record says what it took."""

import asyncio
from typing import Any

import pytest
import redis

from headrace_dev.testing.clients import Caller, head, request
from headrace_dev.testing.invariants import debt, eventually, idle, parts, settled
from headrace_dev.testing.upstream import ScriptedUpstream, prompt
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World, at_rest

SLOW: dict[str, Any] = {"tokens": 500, "interval_ms": 20}


async def streaming(web: WebProcess, world: World, name: str, script: dict[str, Any], **fields: Any) -> Caller:
    caller = await Caller.to(web.url)
    return await caller.ask(world, name=name, content=prompt(**script), stream=True, **fields)


async def read(caller: Caller, events: int) -> None:
    for _ in range(events):
        await caller.event()


async def opened(upstream: ScriptedUpstream, requests: int) -> None:
    while upstream.stats()["started"] < requests:  # noqa: ASYNC110  (another process)
        await asyncio.sleep(0.02)


async def test_it_ends_at_every_moment_after_the_first_byte(
    quick_web: WebProcess, world: World, upstream: ScriptedUpstream, valkey: "redis.Redis"
) -> None:
    world.wait_known(quick_web)

    async def leave_after(name: str, events: int, script: dict[str, Any], *, reset: bool = False, n: int = 1) -> None:
        caller = await streaming(quick_web, world, name, script, n=n)
        await read(caller, events)
        await caller.leave(reset=reset)

    last = {"tokens": 3, "interval_ms": 1, "done": False, "linger_ms": 5000}
    await asyncio.gather(
        leave_after("first", 1, SLOW),
        leave_after("mid", 6, SLOW),
        leave_after("mid-reset", 6, SLOW, reset=True),
        leave_after("mid-two-choices", 8, SLOW, n=2),
        leave_after("before-done", 4, last),  # its three tokens and its finish_reason
        leave_after("uncounted", 6, {**SLOW, "usage": "none"}),
        leave_after("fast", 3, {"tokens": 100_000, "interval_ms": 0}),
    )
    idle(upstream, 1)
    records = {event["labels"]["client_request_id"]: event for event in settled(valkey, world, 7)}
    sent = upstream.stats()["tokens_by_rid"]
    for name, least in {"first": 1, "mid": 5, "mid-reset": 5, "mid-two-choices": 6, "before-done": 3}.items():
        record = records[name]
        assert record["status"] == "cancelled", record
        assert record["usage_source"] == "reported", record
        assert least <= record["output_tokens"] <= sent[record["upstream_id"]] < 500, record
        assert record["input_tokens"] > 0, record
    assert records["before-done"]["output_tokens"] == 3
    assert records["uncounted"]["usage_source"] in {"counted", "estimated"}
    assert 5 <= records["uncounted"]["output_tokens"] <= 2 * sent[records["uncounted"]["upstream_id"]]  # by text alone
    # The upstream counts a token once it is written, which may be after we have it.
    assert 3 <= records["fast"]["output_tokens"] <= sent[records["fast"]["upstream_id"]] + 1 < 100_000


@pytest.fixture
def limited(world: World, quick_web: WebProcess) -> tuple[str, str]:
    """A key's name and text."""
    key, secret = world.add_key(input_tokens_per_minute=60_000, output_tokens_per_minute=60_000, concurrency=1)
    world.wait_known(quick_web, secret=secret)
    return key.pk, secret


async def test_it_charges_no_money_before_the_first_byte_but_keeps_the_prompt_s_tokens(
    quick_web: WebProcess, world: World, limited: tuple[str, str], upstream: ScriptedUpstream, valkey: "redis.Redis"
) -> None:
    key, secret = limited
    long = "word " * 14_000  # about 20,000 tokens by the first estimate; 1,000 a second drain

    async def leave_before_any(script: dict[str, Any], text: str = "") -> None:
        caller = await Caller.to(quick_web.url)
        await caller.ask(world, secret=secret, content=prompt(text, **script), stream=True, max_tokens=20_000)
        await opened(upstream, started + 1)
        await caller.leave()

    for script in ({"first_ms": 60_000}, {"stall_after": 0}, {"headers_only": True}):  # stall_after: a role chunk came
        started = upstream.stats()["started"]
        await leave_before_any(script)
        idle(upstream, 1)
    [*events] = settled(valkey, world, 3)
    assert {(e["status"], e["input_tokens"], e["output_tokens"]) for e in events} == {("cancelled", 0, 0)}
    assert debt(valkey, key, "output_tokens", 60_000) == 0
    started = upstream.stats()["started"]
    await leave_before_any({"first_ms": 60_000}, long)
    settled(valkey, world, 4)
    assert 10_000 < debt(valkey, key, "input_tokens", 60_000) < 30_000
    assert debt(valkey, key, "output_tokens", 60_000) == 0


async def test_it_admits_nothing_of_a_request_that_never_came_whole(
    quick_web: WebProcess, world: World, upstream: ScriptedUpstream, valkey: "redis.Redis"
) -> None:
    world.wait_known(quick_web)
    whole = request(world, content=prompt(**SLOW), stream=True)
    for sent in (whole[:20], head(world, length=500), whole[:-1]):
        for reset in (False, True):
            caller = await Caller.to(quick_web.url)
            await caller.send(sent)
            await asyncio.sleep(0.05)
            await caller.leave(reset=reset)
    good = await streaming(quick_web, world, "", {"tokens": 1})
    assert (await good.head()).status == 200
    settled(valkey, world, 1)
    await good.leave()
    assert upstream.stats()["started"] == 1


async def test_it_ends_one_whose_client_left_at_once(
    quick_web: WebProcess, world: World, upstream: ScriptedUpstream, valkey: "redis.Redis"
) -> None:
    """Right after its last byte: whether it was admitted or not, nothing stays."""
    world.wait_known(quick_web)
    for number in range(20):
        caller = await Caller.to(quick_web.url)
        await caller.send(request(world, content=prompt(**SLOW), stream=number % 2 == 0))
        await caller.leave(reset=number % 4 < 2)
    idle(upstream, 1)
    await asyncio.sleep(0.5)  # the last ones may just be being admitted
    at_rest(valkey)
    for event in settled(valkey, world, len(parts(valkey, world, 0))):
        assert event["status"] == "cancelled", event
        assert event["output_tokens"] < 100, event


async def test_it_frees_the_slot_of_a_key_that_may_run_one(
    quick_web: WebProcess, world: World, limited: tuple[str, str], valkey: "redis.Redis"
) -> None:
    _, secret = limited
    first = await Caller.to(quick_web.url)
    await first.ask(world, secret=secret, content=prompt(**SLOW), stream=True)
    await read(first, 2)
    second = await (await Caller.to(quick_web.url)).ask(world, secret=secret)
    assert (await second.head()).status == 429
    await first.leave()
    eventually(lambda: not valkey.zcard("hr:holds"), 2)
    third = await (await Caller.to(quick_web.url)).ask(world, secret=secret)
    assert (await third.head()).status == 200
    await third.leave()
    await second.leave()
    settled(valkey, world, 2)
