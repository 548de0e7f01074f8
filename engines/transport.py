"""httpx over aiohttp, with the reader of each answer at hand.

httpx wraps a body in four nested generators; a stream of a hundred events goes through them a hundred times. Reading
aiohttp's own StreamReader instead costs a fifth of the gateway's time per event less.
"""

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, ref

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport
from httpx_aiohttp.transport import AiohttpResponseStream

from engines.name_lookup import Resolver

# Whether the connection of the request this task sends has served before. Whoever sends sets it False first.
is_reused: ContextVar[bool] = ContextVar("is_reused", default=False)
# Called once the request this task sends has a connection to go out on: from then on it may be worked on.
on_connected: ContextVar[Callable[[], None] | None] = ContextVar("on_connected", default=None)

# Engines keep an idle connection for 5 s; giving it up after 4 keeps us from writing into a closed one.
_IDLE_SECONDS = 4.0
# Of one header's line: some providers send policies and cookies that are larger than aiohttp's 8 KiB.
_HEADER_BYTES = 64 * 1024


class _Connector(aiohttp.TCPConnector):
    """Tells, by `is_reused`, which of its connections served before; aiohttp's traces would, at ten times the cost.

    A connection that is lost ends the reading from it. aiohttp does so unless it was its own parser that gave the
    connection up, as at chunks that are none: then a reader would wait for ever.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._readers: WeakKeyDictionary[Any, aiohttp.StreamReader | None] = WeakKeyDictionary()

    async def connect(self, *arguments: Any, **options: Any) -> aiohttp.connector.Connection:
        connection = await super().connect(*arguments, **options)
        protocol = connection.protocol
        is_reused.set(protocol in self._readers)
        if (tell := on_connected.get()) is not None:
            tell()
        if protocol is not None and protocol not in self._readers and (closed := protocol.closed) is not None:
            self._readers[protocol] = None
            closed.add_done_callback(partial(self._lost, ref(protocol)))
        return connection

    def reads(self, connection: aiohttp.connector.Connection | None, reader: aiohttp.StreamReader) -> None:
        """`reader` gets the body that comes on `connection`, None if it has come whole already."""
        if connection is not None and connection.protocol in self._readers:
            self._readers[connection.protocol] = reader

    def _lost(self, protocol: "ref[Any]", closed: "asyncio.Future[None]") -> None:
        if not closed.cancelled():
            closed.exception()  # seen: whoever reads hears of it
        # Taken out: a reader holds its protocol, so that nothing would ever free the two.
        if (known := protocol()) is None:
            return  # nobody is left who could read from it
        reader = self._readers.pop(known, None)
        if reader is not None and not reader.is_eof() and reader.exception() is None:
            reader.set_exception(aiohttp.ClientPayloadError("the connection was lost"))


class Transport(AiohttpTransport):
    """As its parent, without cookies; the aiohttp reader of an answer's body is in its extensions."""

    _connector: _Connector

    def __init__(self) -> None:
        context = httpx.create_ssl_context(trust_env=False)
        # Engines inside a company have certificates that only its machines trust, by their own store or SSL_CERT_FILE.
        context.load_default_certs()
        super().__init__(verify=context, trust_env=False)

    def get_client(self) -> aiohttp.ClientSession:
        self._connector = _Connector(
            limit=0, keepalive_timeout=_IDLE_SECONDS, ssl=self.ssl_context, resolver=Resolver()
        )
        return aiohttp.ClientSession(
            connector=self._connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            max_line_size=_HEADER_BYTES,
            max_field_size=_HEADER_BYTES,
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        assert isinstance(response.stream, AiohttpResponseStream)
        raw = response.stream._aiohttp_response
        self._connector.reads(raw.connection, raw.content)
        response.extensions["reader"] = raw.content
        return response


def reader(response: httpx.Response) -> aiohttp.StreamReader:
    """The reader of an answer that came through Transport. Read either it or the response, not both."""
    found: aiohttp.StreamReader = response.extensions["reader"]
    return found
