"""The HTTP client to upstreams: one per process, its failures told as engines/errors.py tells them."""

import asyncio
from collections.abc import Callable, Sequence
from functools import lru_cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import aiohttp
import httpx
import msgspec

from engines.answer import Answer
from engines.errors import Stale, TimedOut, Unreachable, UpstreamError
from engines.protocols.base import Upstream
from engines.refusals import refusal
from engines.transport import Transport, is_reused, on_connected

# Deadlines are kept by whoever waits (the route's, for the whole request at once); only connecting is timed here.
_NO_TIMEOUT = None
_ERROR_BODY_LIMIT = 64 * 1024
COUNT_SECONDS = 2.0
_COUNTED_AT_ONCE = 8  # of one request's choices
# What sending a request raises: an address or a key may be none, in many ways (ValueError).
_UNSENT = (httpx.TransportError, httpx.InvalidURL, aiohttp.ClientError, OSError, ValueError)
_CHAT_HEADERS = {"content-type": "application/json", "accept-encoding": "identity", "user-agent": "headrace"}


@lru_cache(maxsize=4096)
def _parsed(url: str) -> httpx.URL:
    return httpx.URL(url)


class Client:
    """Sends chats. No retries, redirects or cookies of its own: whoever routes decides on a second try.

    Bodies are asked for as they are: events are read off the wire, and compressing one at a time gains nothing.
    """

    def __init__(self) -> None:
        self._transport = Transport()
        self._http = httpx.AsyncClient(
            transport=self._transport,
            timeout=_NO_TIMEOUT,
            trust_env=False,
            follow_redirects=False,
            headers={"accept-encoding": "identity", "user-agent": "headrace"},
            # What an answer to one tenant set must not go out with another's request.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )

    async def chat(
        self,
        upstream: Upstream,
        body: bytes,
        *,
        connect_timeout: float,
        headers: dict[str, str] | None = None,
        connected: Callable[[], None] | None = None,
    ) -> Answer:
        """Send a chat; the answer once its headers are a 200. Raises UpstreamError.

        headers: the attempt's own. connected: called before the first byte goes out.
        """
        is_reused.set(False)
        on_connected.set(connected)
        try:
            request = httpx.Request(
                "POST",
                _parsed(upstream.base_url + upstream.protocol.chat_path),
                content=body,
                headers=_CHAT_HEADERS | upstream.headers() | (headers or {}),
                # `pool` bounds the whole way to a connection, looking up the host's name included; nobody waits for a
                # pool.
                extensions={"timeout": {"connect": connect_timeout, "pool": connect_timeout}},
            )
            # Past httpx's client: its redirects, cookies and authentication, none of which a chat may have, take half
            # the time of sending one.
            response = await self._transport.handle_async_request(request)
        except _UNSENT as error:
            raise _unsent(error, may_be_stale=is_reused.get()) from error
        if response.status_code == 200:
            return Answer(response)
        async with Answer(response) as answer:
            raise refusal(response.status_code, response.headers, await answer.head(_ERROR_BODY_LIMIT))

    async def abort(self, upstream: Upstream, rid: str, *, timeout: float = 2.0) -> bool:
        """Tell the engine to end an attempt. True when it took the word; False where that cannot be said."""
        call = upstream.protocol.abort_request(upstream, rid)
        if call is None:
            return False
        url, headers, body = call
        try:
            answer = await self._http.post(url, content=body, headers=headers, timeout=timeout)
        except _UNSENT:
            return False
        return answer.status_code == 200

    async def count(self, upstream: Upstream, texts: Sequence[str]) -> int | None:
        """How many tokens `texts` are in all, each by itself, by the upstream's own tokenizer.

        None where it cannot say, or not of all of them within COUNT_SECONDS.
        """
        turns = asyncio.Semaphore(_COUNTED_AT_ONCE)

        async def count(text: str) -> int | None:
            async with turns:
                return await self._count(upstream, upstream.protocol.count_request(upstream, text))

        try:
            async with asyncio.timeout(COUNT_SECONDS):
                first = [await count(text) for text in texts[:1]]  # one that cannot say is not asked of each
                counts = first if None in first else first + await asyncio.gather(*map(count, texts[1:]))
        except TimeoutError:
            return None
        known = [each for each in counts if each is not None]
        return sum(known) if known and len(known) == len(counts) else None

    async def count_prompt(self, upstream: Upstream, fields: dict[str, Any]) -> int | None:
        """How many tokens a chat's prompt is, template and tools included; None where the upstream cannot say."""
        return await self._count(upstream, upstream.protocol.count_prompt_request(upstream, fields))

    async def _count(
        self, upstream: Upstream, call: tuple[str, bytes] | None, *, timeout: float = COUNT_SECONDS
    ) -> int | None:
        if call is None:
            return None
        url, body = call
        headers = {"content-type": "application/json", **upstream.headers()}
        try:
            answer = await self._http.post(url, content=body, headers=headers, timeout=timeout)
            return upstream.protocol.counted(answer.content) if answer.status_code == 200 else None
        except (*_UNSENT, msgspec.DecodeError, RecursionError):
            return None

    async def close(self) -> None:
        await self._http.aclose()


def _unsent(error: Exception, *, may_be_stale: bool) -> UpstreamError:
    """Why there is no answer. The transport wraps aiohttp's errors, which tell more than their httpx twins.

    Only a connection that served before can be stale: a fresh one that breaks off may have begun to work for us.
    """
    cause = error.__cause__ or error
    if may_be_stale and (
        isinstance(cause, aiohttp.ServerDisconnectedError | ConnectionResetError)
        or (isinstance(cause, aiohttp.ClientOSError) and not isinstance(cause, aiohttp.ClientConnectorError))
    ):
        return Stale(type(cause).__name__)
    if isinstance(cause, aiohttp.ConnectionTimeoutError | TimeoutError):
        return TimedOut("connect")
    return Unreachable(type(cause).__name__)
