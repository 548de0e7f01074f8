"""The client against servers that behave oddly: what it raises, what it reads, what it asks twice."""

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from engines.client import Client
from engines.errors import (
    AccountRefused,
    BadAnswer,
    Busy,
    Disconnected,
    Failed,
    Rejected,
    Stale,
    TimedOut,
    Unreachable,
    UpstreamError,
)
from engines.protocols import PROTOCOLS, Upstream
from engines.refusals import error_event

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"


@asynccontextmanager
async def server(talk: Talk) -> AsyncIterator[Upstream]:
    """A server on a port of its own that hands each connection to `talk`."""
    tasks: set[asyncio.Task[None]] = set()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        finally:
            writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(one(reader, writer)))

    listening = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    try:
        yield Upstream(PROTOCOLS["sglang"], f"http://127.0.0.1:{port}", "m")
    finally:
        listening.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    client = Client()
    yield client
    await client.close()


async def request(reader: asyncio.StreamReader) -> bytes:
    """One whole request; raises IncompleteReadError at the end of the connection."""
    head = await reader.readuntil(b"\r\n\r\n")
    [length] = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
    return head + await reader.readexactly(int(length))


def says(*pieces: bytes) -> Talk:
    """Read a request, write these pieces, close."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0.02)  # a read of its own for each

    return talk


async def read(client: Client, talk: Talk) -> bytes:
    async with server(talk) as upstream:
        answer = await client.chat(upstream, b"{}", connect_timeout=5)
        async with answer:
            return await answer.whole(2**20)


async def test_it_reads_a_body_however_it_is_framed(client: Client) -> None:
    chunked = OK + b"transfer-encoding: chunked\r\n\r\n"
    assert await read(client, says(chunked, b"3\r\nabc\r\n", b"2\r\nde\r\n0\r\n\r\n")) == b"abcde"
    assert await read(client, says(OK + b"content-length: 5\r\n\r\n", b"ab", b"cde")) == b"abcde"
    assert await read(client, says(OK + b"\r\n", b"until the end")) == b"until the end"
    assert await read(client, says(OK + b"content-length: 0\r\n\r\n")) == b""


@pytest.mark.parametrize(
    "pieces",
    [
        [OK + b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"],
        [OK + b"transfer-encoding: chunked\r\n\r\n9\r\nabc"],
        [OK + b"transfer-encoding: chunked\r\n\r\n", b"nonsense\r\n"],
        [OK + b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n", b"nonsense\r\n"],
        [OK + b"content-length: 9\r\n\r\nabc"],
    ],
)
async def test_it_tells_a_body_that_breaks_off_from_one_that_ends(client: Client, pieces: list[bytes]) -> None:
    with pytest.raises(Disconnected):
        await read(client, says(*pieces))


@pytest.mark.parametrize("said", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 200 OK\r\nx"])
async def test_it_takes_no_answer_for_an_unreachable_server(client: Client, said: bytes) -> None:
    with pytest.raises(Unreachable) as raised:
        await read(client, says(said))
    assert not isinstance(raised.value, Stale)


@pytest.mark.parametrize(
    "address", ["http://h:99999", "http://[::1:30000", "http://[::zz]:1", "http://a..b:1", "http://xn--:1"]
)
async def test_it_cannot_reach_what_is_no_address(client: Client, address: str) -> None:
    await nothing_comes_of(client, Upstream(PROTOCOLS["sglang"], address, "m"))


@pytest.mark.parametrize("key", ["sk-1\n", "sk-1\r\nx-more: 1", "schlüssel", "\0"], ids=repr)
async def test_it_sends_no_key_that_is_none(client: Client, key: str) -> None:
    async with server(says(OK + b"\r\n{}")) as upstream:
        await nothing_comes_of(client, Upstream(upstream.protocol, upstream.base_url, "m", key))


async def nothing_comes_of(client: Client, upstream: Upstream) -> None:
    with pytest.raises(Unreachable):
        await client.chat(upstream, b"{}", connect_timeout=1)
    assert await client.abort(upstream, "0f" * 16) is False
    assert await client.count(upstream, ["text"]) is None


async def test_it_takes_an_answer_with_large_headers(client: Client) -> None:
    """Policies and cookies of 20 KiB are what some providers send with each answer."""
    assert await read(client, says(OK + b"x-policy: " + b"a" * 20_000 + b"\r\n\r\nok")) == b"ok"


async def test_it_knows_a_stale_connection_from_a_fresh_one(client: Client) -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(OK + b"content-length: 2\r\n\r\nok")
        await request(reader)  # the second one on this connection gets no answer

    async with server(once) as upstream:
        for _ in range(2):
            answer = await client.chat(upstream, b"{}", connect_timeout=5)
            assert await answer.whole(10) == b"ok"
            await answer.close()
            with pytest.raises(Stale):
                await client.chat(upstream, b"{}", connect_timeout=5)


@pytest.fixture
def silent_names(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Names below `.silent` are looked up for as long as the test runs."""
    answered, real = threading.Event(), socket.getaddrinfo

    def look(host: Any, *arguments: Any, **options: Any) -> Any:
        if str(host).endswith(".silent"):
            answered.wait(60)
            raise socket.gaierror("nobody answered")
        return real(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look)
    yield
    answered.set()


async def test_it_gives_up_a_host_whose_name_nobody_looks_up(client: Client, silent_names: None) -> None:
    upstream = Upstream(PROTOCOLS["openai"], "http://engine.silent:30000", "m")
    with pytest.raises(TimedOut) as raised:
        async with asyncio.timeout(10):
            await client.chat(upstream, b"{}", connect_timeout=0.2)
    assert raised.value.which == "connect"


async def test_hosts_whose_names_nobody_looks_up_keep_no_other_waiting(client: Client, silent_names: None) -> None:
    """More of them than there are threads for the work of an event loop."""

    async def ask(number: int) -> None:
        upstream = Upstream(PROTOCOLS["openai"], f"http://engine-{number % 50}.silent:30000", "m")
        with pytest.raises(TimedOut):
            await client.chat(upstream, b"{}", connect_timeout=10)

    asking = [asyncio.create_task(ask(number)) for number in range(100)]
    async with server(says(OK + b"content-length: 2\r\n\r\nok")) as upstream:
        port = upstream.base_url.rpartition(":")[2]
        named = Upstream(upstream.protocol, f"http://localhost:{port}", "m")
        async with asyncio.timeout(5):
            answer = await client.chat(named, b"{}", connect_timeout=5)
        assert answer.content_type is not None
        await answer.close()
    for each in asking:
        each.cancel()
    await asyncio.gather(*asking, return_exceptions=True)


async def test_it_bounds_a_body(client: Client) -> None:
    async with server(says(OK + b"\r\n", b"x" * 1000)) as upstream:
        answer = await client.chat(upstream, b"{}", connect_timeout=5)
        with pytest.raises(BadAnswer):
            await answer.whole(999)
        await answer.close()


async def test_it_reads_no_more_of_an_error_than_its_head(client: Client) -> None:
    """An error that never ends, and says at its beginning what it is."""

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n This model's maximum context length is 5.")
        while not writer.is_closing():
            writer.write(b"x" * 65536)
            await writer.drain()

    async with server(endless) as upstream:
        with pytest.raises(Rejected) as raised:
            await client.chat(upstream, b"{}", connect_timeout=5)
    assert raised.value.kind == "context_length"


async def test_it_takes_what_came_of_an_error_that_breaks_off(client: Client) -> None:
    with pytest.raises(Rejected) as raised:
        await read(client, says(b"HTTP/1.1 400 x\r\ncontent-length: 999\r\n\r\nexceed_context_size"))
    assert raised.value.kind == "context_length"


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"429 x\r\nretry-after: 7", Busy),
        (b"503 x\r\nretry-after: Fri, 31 Dec 1999 23:59:59 GMT", Busy),
        (b"503 x\r\nretry-after: -5", Busy),
        (b"500 x", Failed),
        (b"301 x\r\nlocation: http://10.0.0.7/", Failed),
        (b"201 x", Failed),
        (b"404 x", Failed),
        (b"422 x", Rejected),
    ],
)
async def test_it_sorts_refusals(client: Client, head: bytes, kind: type[UpstreamError]) -> None:
    with pytest.raises(kind) as raised:
        await read(client, says(b"HTTP/1.1 " + head + b"\r\ncontent-length: 2\r\n\r\n{}"))
    if isinstance(raised.value, Busy):
        assert raised.value.retry_after in {7.0, None, 0.0}


@pytest.mark.parametrize(
    ("status", "said", "kind"),
    [
        (400, '{"error":{"message":"Your credit balance is too low to access the API."}}', AccountRefused),
        (400, '{"object":"error","message":"Error code: 400 - credit balance too low","code":400}', AccountRefused),
        (400, '{"detail":"credit balance too low"}', AccountRefused),
        (400, "Credit balance too low", AccountRefused),
        (400, '{"error":{"message":"Wait.","code":"billing_hard_limit_reached"}}', AccountRefused),
        (429, '[{"error":{"type":"insufficient_quota"}}]', AccountRefused),
        (400, '{"message":"Invalid schema: {\'description\': \'our credit balance\'}","code":400}', Rejected),
        (400, '{"error":{"message":"Unknown value: \'insufficient_quota\'."}}', Rejected),
        (422, '{"detail":[{"loc":["body"],"input":"plan and billing"}]}', Rejected),
        (400, "Cannot parse `credit balance`", Rejected),
        (429, '{"error":{"message":"Too many of \\"plan and billing\\"."}}', Busy),
        (400, "[" * 60_000, Rejected),
    ],
)  # fmt: skip
async def test_it_takes_nothing_that_an_error_repeats_for_a_word_on_our_account(
    client: Client, status: int, said: str, kind: type[UpstreamError]
) -> None:
    """Else what one client writes would have an engine left alone for all."""
    head = f"HTTP/1.1 {status} x\r\ncontent-length: {len(said)}\r\n\r\n{said}"
    with pytest.raises(UpstreamError) as raised:
        await read(client, says(head.encode()))
    assert type(raised.value) is kind
    if status == 400 and said.startswith("{"):
        assert type(error_event(said.encode())) in {kind, Failed}


_QUOTA = "You exceeded your current quota, please check your plan and billing details."
_BALANCE = "Your credit balance is too low."
_LIMIT = {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": _QUOTA}
_DELAY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "22.5s"}


@pytest.mark.parametrize(
    ("error", "header", "wait"),
    [
        ({"message": _QUOTA, "type": "insufficient_quota", "code": "insufficient_quota"}, "", "account"),
        ({"message": _QUOTA, "type": "insufficient_quota", "code": "insufficient_quota"}, "7", "account"),
        ({"message": _BALANCE}, "", "account"),
        ({"message": _QUOTA, "type": "requests", "code": "rate_limit_exceeded"}, "", None),
        ({"message": _QUOTA, "type": "tokens", "code": "rate_limit_exceeded"}, "7", 7.0),
        ({"message": _QUOTA}, "7", 7.0),
        ({"message": _QUOTA}, "", None),
        (_LIMIT, "", None),
        ({**_LIMIT, "details": [{"@type": "type.googleapis.com/google.rpc.Help"}, _DELAY]}, "", 22.5),
        ({**_LIMIT, "details": [_DELAY]}, "7", 7.0),
        ({**_LIMIT, "details": [{"retryDelay": "soon"}, 7]}, "", None),
    ],
)
async def test_it_tells_a_limit_by_the_minute_from_an_account_without_money(
    client: Client, error: dict[str, object], header: str, wait: float | str | None
) -> None:
    """Both are a 429, and both may speak of plans and billing: one passes within a minute, the other by no waiting."""
    body = json.dumps([{"error": error}]).encode()
    more = f"retry-after: {header}\r\n".encode() if header else b""
    with pytest.raises(UpstreamError) as raised:
        await read(client, says(b"HTTP/1.1 429 x\r\n%bcontent-length: %d\r\n\r\n%b" % (more, len(body), body)))
    said = raised.value
    assert type(said) is (AccountRefused if wait == "account" else Busy)
    if isinstance(said, Busy):
        assert said.retry_after == wait
    if not header:
        event = error_event(json.dumps({"error": {"code": 429, **error}}).encode())
        assert type(event) is type(said)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b'{"error":{"code":503}}', Busy),
        (b'{"error":{"code":"429"}}', Busy),
        (b'{"object":"error","code":503}', Busy),
        (b'{"error":{"code":400,"message":"bad"}}', Rejected),
        (b'{"error":{"code":500}}', Failed),
        (b'{"error":"text"}', Failed),
        (b'{"error":{"code":null,"message":"maximum context length is 10"}}', Rejected),
        (b'{"error":{"code":"context_length_exceeded","type":"invalid_request_error"}}', Rejected),
        (b'{"error":{"code":null,"type":"BadRequestError","message":"bad"}}', Rejected),
        (b'{"error":{"code":500,"type":"invalid_request_error","message":"context length"}}', Failed),
        (b'{"error":{"code":"rate_limit_exceeded"}}', Busy),
        (b'{"error":{"type":"overloaded_error"}}', Busy),
        (b'{"error":["list"]}', Failed),
        (b"[]", Failed),
        (b"{", BadAnswer),
        (b"[" * 60_000, BadAnswer),
    ],
)
def test_it_sorts_error_events(data: bytes, kind: type[UpstreamError]) -> None:
    assert type(error_event(data)) is kind


async def test_it_counts_only_where_the_engine_can(client: Client) -> None:
    ok = b'HTTP/1.1 200 OK\r\ncontent-length: 18\r\n\r\n{"tokens":[1,2,3]}'
    async with server(says(ok)) as upstream:
        assert await client.count(upstream, ["text"]) == 3
        assert await client.count(upstream, []) is None
    for said in (
        b"",
        b"HTTP/1.1 404 x\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
    ):
        async with server(says(said)) as upstream:
            assert await client.count(upstream, ["text"]) is None
            assert await client.count_prompt(upstream, {"messages": []}) is None
            assert await client.abort(upstream, "0f" * 16) is (b"200" in said)
