"""What clients send beside a request: more than they declared, a next request too early, wishes for other protocols."""

import asyncio

import redis

from headrace_dev.testing.clients import Caller, head, request
from headrace_dev.testing.invariants import clients, eventually, idle, settled
from headrace_dev.testing.upstream import ScriptedUpstream, prompt
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World

SHORT = prompt(tokens=2)


async def test_it_answers_one_request_at_a_time_and_still_sees_its_client_leave(
    quick_web: WebProcess, world: World, upstream: ScriptedUpstream, valkey: "redis.Redis"
) -> None:
    """More than the declared body, be it rubbish or a next request, is not served and does not make us deaf."""
    world.wait_known(quick_web)
    for more in (b"more than was declared", request(world), b"x" * 300_000):
        caller = await Caller.to(quick_web.url)
        await caller.send(request(world, content=prompt(tokens=3, interval_ms=50), stream=True) + more)
        assert (await caller.head()).status == 200
        assert (await caller.rest()).endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
        await caller.leave()
        leaver = await Caller.to(quick_web.url)
        await leaver.send(request(world, content=prompt(first_ms=60_000), stream=True))
        await asyncio.sleep(0.2)
        await leaver.send(more)
        await asyncio.sleep(0.1)
        assert upstream.stats()["open"] == 1
        await leaver.leave()
        idle(upstream, 1)
    records = settled(valkey, world, 6)
    assert [record["status"] for record in records] == ["ok", "cancelled"] * 3


async def test_it_serves_one_after_the_other_on_a_connection(
    quick_web: WebProcess, world: World, valkey: "redis.Redis"
) -> None:
    """An empty line after a body, as some clients send, is no request."""
    world.wait_known(quick_web)
    caller = await Caller.to(quick_web.url)
    for number in range(3):
        await caller.ask(world, content=SHORT, stream=number == 1)
        await caller.send(b"\r\n")
        assert (await caller.head()).status == 200
        await caller.body()
    await caller.leave()
    settled(valkey, world, 3)


async def test_it_answers_plainly_whoever_asks_for_another_protocol(
    quick_web: WebProcess, world: World, valkey: "redis.Redis"
) -> None:
    """Java's client asks for HTTP/2 with each first request, body and all."""
    world.wait_known(quick_web)
    for wish in (b"h2c", b"websocket"):
        caller = await Caller.to(quick_web.url)
        asking = b"\r\nconnection: Upgrade, HTTP2-Settings\r\nupgrade: " + wish + b"\r\nhttp2-settings: AAMAAABk\r\n"
        for _ in range(2):
            await caller.send(request(world, content=SHORT).replace(b"\r\n", asking, 1))
            assert (await caller.head()).status == 200
            await caller.body()
        await caller.leave()
    settled(valkey, world, 4)
    eventually(lambda: clients(quick_web) == 0)


async def test_it_sends_no_chunks_to_a_client_of_http_1_0(
    quick_web: WebProcess, world: World, valkey: "redis.Redis"
) -> None:
    """It knows none (nginx speaks 1.0 to its upstreams unless told otherwise): a stream ends with its connection."""
    world.wait_known(quick_web)
    for more in (b"", b"connection: keep-alive\r\n"):
        for stream in (True, False):
            caller = await Caller.to(quick_web.url)
            asked = request(world, content=prompt(tokens=3, interval_ms=5), stream=stream)
            await caller.send(asked.replace(b"HTTP/1.1\r\n", b"HTTP/1.0\r\n" + more, 1))
            got = await caller.head()
            body = await caller.rest()
            assert got.status == 200
            assert "transfer-encoding" not in got.headers
            if stream:
                lines = body.decode().removesuffix("\n\n").split("\n\n")
                assert all(line.startswith("data: ") for line in lines), body
                assert lines[-1] == "data: [DONE]"
            else:
                assert int(got.headers["content-length"]) == len(body)
            await caller.leave()
    caller = await Caller.to(quick_web.url)
    await caller.send(b"GET /v1/models HTTP/1.0\r\n\r\n")
    assert (await caller.head()).status == 401
    assert await caller.error() == "invalid_api_key"
    await caller.leave()
    settled(valkey, world, 4)


async def test_it_says_at_once_that_a_body_s_framing_is_none(quick_web: WebProcess, world: World) -> None:
    world.wait_known(quick_web)
    asked = request(world, content=SHORT)
    for nonsense in (
        head(world, length=None) + b"zz\r\nabc\r\n",
        asked.replace(b"content-length", b"content-length: 3\r\ncontent-length", 1),
        asked.replace(b"content-length: ", b"content-length: -", 1),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /v1/\xff HTTP/1.1\r\nhost: x\r\n\r\n",
    ):
        caller = await Caller.to(quick_web.url)
        await caller.send(nonsense)
        async with asyncio.timeout(1.5):  # less than the time a body has to come
            assert (await caller.head()).status == 400
            assert await caller.error() == "invalid_request"
            assert await caller.rest() == b""
        await caller.leave()


async def test_it_keeps_no_connection_whose_body_may_never_come(quick_web: WebProcess, world: World) -> None:
    """Refused before it was told to go on, a client may leave its body out: what follows would be taken for it."""
    world.wait_known(quick_web)
    asked = head(world, length=500, secret="sk-hr-wrong").replace(b"\r\n", b"\r\nexpect: 100-continue\r\n", 1)
    caller = await Caller.to(quick_web.url)
    await caller.send(asked)
    first = await caller.head()
    if first.status == 100:  # told to go on before we look at its key
        await caller.send(b"x" * 500)
        assert (await caller.head()).status == 401
    else:
        assert (first.status, first.headers["connection"]) == (401, "close")
        assert await caller.error() == "invalid_api_key"
        assert await caller.rest() == b""
    await caller.leave()
