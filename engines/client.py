"""The HTTP client to upstreams: one per process, its failures told as engines/errors.py tells them."""

import asyncio
import json
import re
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from functools import lru_cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from math import isfinite
from types import TracebackType
from typing import Any

import aiohttp
import httpx
import msgspec

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
from engines.protocols.base import Upstream
from engines.transport import Transport, is_reused, on_connected, reader

# Deadlines are kept by whoever waits (the route's, for the whole request at once); only connecting is timed here.
_NO_TIMEOUT = None
_ERROR_BODY_LIMIT = 64 * 1024
# Words by which engines and providers say that the prompt does not fit, and that the account has no money.
_CONTEXT_WORDS = ("context length", "context size", "exceed_context_size", "context_length_exceeded", "maximum context")
_ACCOUNT_WORDS = (
    "credit balance",
    "insufficient_quota",
    "insufficient quota",
    "plan and billing",
    "billing_hard_limit",
)
# Where an error begins to repeat what somebody sent: no apostrophe, which has a letter before it.
_REPEATED = re.compile(r"(?<!\w)['\"`]|[\[{<]")
# The types of errors that tell what a status would, where there is none.
_BUSY_TYPES = frozenset({"rate_limit_error", "overloaded_error"})
_REJECTED_TYPES = frozenset({"invalid_request_error", "BadRequestError"})


_CHAT_HEADERS = {"content-type": "application/json", "accept-encoding": "identity", "user-agent": "headrace"}


@lru_cache(maxsize=4096)
def _parsed(url: str) -> httpx.URL:
    return httpx.URL(url)


class Answer:
    """An upstream's 200, its body still to be read. Close it: closing aborts what still runs."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._reader = reader(response)
        self.content_type: str = response.headers.get("content-type", "")

    async def read(self) -> bytes:
        """What has arrived, at least a byte; b"" at the end of the body. Raises Disconnected when it breaks off."""
        try:
            return await self._reader.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise Disconnected(type(error).__name__) from error

    @property
    def is_event_stream(self) -> bool:
        return self.content_type.lower().startswith("text/event-stream")

    @property
    def is_read(self) -> bool:
        """Whether the whole body was read, so that its connection serves the next request."""
        return self._reader.at_eof()

    async def whole(self, limit: int) -> bytes:
        """The whole body, at most `limit` bytes. Raises BadAnswer, Disconnected."""
        pieces, size = [], 0
        while piece := await self.read():
            size += len(piece)
            if size > limit:
                raise BadAnswer(f"more than {limit} bytes")
            pieces.append(piece)
        return b"".join(pieces)

    async def head(self, limit: int) -> bytes:
        """The first `limit` bytes of the body, or what came of it."""
        body = b""
        try:
            while len(body) < limit and (piece := await self.read()):
                body += piece
        except Disconnected:
            return body
        return body[:limit]

    async def drained(self, patience: float, most: int) -> bool:
        """Read on and forget it; False if it went on for `patience` seconds. Beyond `most` bytes nobody can tell."""
        size = 0
        try:
            async with asyncio.timeout(patience):
                while size <= most and (piece := await self.read()):
                    size += len(piece)
        except TimeoutError:
            return False
        except Disconnected:
            return True
        return True

    async def close(self) -> None:
        # What goes wrong while hanging up is no longer of interest: the connection is gone either way.
        try:
            await self._response.aclose()
        except (httpx.TransportError, aiohttp.ClientError, OSError):
            return

    async def __aenter__(self) -> "Answer":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class Client:
    """Sends chats. No retries, redirects or cookies of its own: whoever routes decides on a second try.

    Bodies are asked for as they are: events are read off the wire, and compressing one at a time gains nothing.
    """

    def __init__(self) -> None:
        self._transport = Transport(trust_env=False)
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
        request = httpx.Request(
            "POST",
            _parsed(upstream.base_url + upstream.protocol.chat_path),
            content=body,
            headers=_CHAT_HEADERS | upstream.headers() | (headers or {}),
            # `pool` bounds the whole way to a connection, looking up the host's name included; nobody waits for a pool.
            extensions={"timeout": {"connect": connect_timeout, "pool": connect_timeout}},
        )
        is_reused.set(False)
        on_connected.set(connected)
        try:
            # Past httpx's client: its redirects, cookies and authentication, none of which a chat may have, take half
            # the time of sending one.
            response = await self._transport.handle_async_request(request)
        except (httpx.TransportError, httpx.InvalidURL, aiohttp.ClientError, OSError) as error:
            raise _unsent(error, may_be_stale=is_reused.get()) from error
        if response.status_code == 200:
            return Answer(response)
        answer = Answer(response)
        try:
            raise await _refusal(response.status_code, response.headers, answer)
        finally:
            await answer.close()

    async def abort(self, upstream: Upstream, rid: str, *, timeout: float = 2.0) -> bool:
        """Tell the engine to end an attempt. True when it took the word; False where that cannot be said."""
        call = upstream.protocol.abort_request(upstream, rid)
        if call is None:
            return False
        url, headers, body = call
        try:
            answer = await self._http.post(url, content=body, headers=headers, timeout=timeout)
        except (httpx.TransportError, aiohttp.ClientError, OSError):
            return False
        return answer.status_code == 200

    async def count(self, upstream: Upstream, text: str) -> int | None:
        """How many tokens `text` is by the upstream's own tokenizer; None where it cannot say."""
        return await self._count(upstream, upstream.protocol.count_request(upstream, text))

    async def count_prompt(self, upstream: Upstream, fields: dict[str, Any]) -> int | None:
        """How many tokens a chat's prompt is, template and tools included; None where the upstream cannot say."""
        return await self._count(upstream, upstream.protocol.count_prompt_request(upstream, fields))

    async def _count(self, upstream: Upstream, call: tuple[str, bytes] | None, *, timeout: float = 2.0) -> int | None:
        if call is None:
            return None
        url, body = call
        headers = {"content-type": "application/json", **upstream.headers()}
        try:
            answer = await self._http.post(url, content=body, headers=headers, timeout=timeout)
            return upstream.protocol.counted(answer.content) if answer.status_code == 200 else None
        except (httpx.TransportError, aiohttp.ClientError, OSError, msgspec.DecodeError, RecursionError):
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


async def _refusal(status: int, headers: httpx.Headers, answer: Answer) -> UpstreamError:
    text = (await answer.head(_ERROR_BODY_LIMIT)).decode("utf-8", "replace")
    if status in {400, 404, 413, 422}:
        if any(word in text.lower() for word in _CONTEXT_WORDS):
            return Rejected("the prompt does not fit", kind="context_length", status=status)
        if _wants_money(_detail(text)):
            return AccountRefused("the upstream refuses the account", status=status)
        if status == 404:
            return Failed("the upstream does not serve this", status=status)
        return Rejected("the upstream refuses the request", status=status)
    if status in {401, 402, 403} or (status == 429 and _wants_money(_detail(text))):
        return AccountRefused("the upstream refuses the account", status=status)
    if status in {429, 503}:
        return Busy("no room", status=status, retry_after=retry_after(headers))
    return Failed("the upstream failed", status=status)


def error_event(data: bytes) -> UpstreamError:
    """What an error inside a 200 stream means: engines report a full queue, and every late failure, like this."""
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        return BadAnswer("an event that is not JSON")
    detail = _unwrapped(event)
    code = str(detail.get("code")) if isinstance(detail, dict) else ""
    kind = str(detail.get("type")) if isinstance(detail, dict) else ""
    text = str(detail).lower()
    if _wants_money(detail):
        return AccountRefused("the upstream refuses the account", status=200)
    # Not all have a number: OpenAI's codes are words or null, and then the type says as much.
    is_number = code.isdecimal()
    if code in {"429", "503"} or (not is_number and ("rate_limit" in code or kind in _BUSY_TYPES)):
        return Busy("no room", status=200)
    is_context = any(word in text for word in _CONTEXT_WORDS)
    if code == "400" or (not is_number and (is_context or kind in _REJECTED_TYPES)):
        return Rejected("the upstream refuses the request", kind="context_length" if is_context else "invalid")
    return Failed("the upstream failed", status=200)


def _unwrapped(event: Any) -> Any:
    """The error in an error's JSON: some say it without the wrapper, or in a list."""
    if isinstance(event, list) and len(event) == 1:
        event = event[0]
    return (event.get("error") or event) if isinstance(event, dict) else event


def _detail(body: str) -> Any:
    """The error that a body tells; a body that is no JSON is all of it."""
    try:
        return _unwrapped(json.loads(body))
    except (ValueError, RecursionError):
        return body


def _wants_money(detail: Any) -> bool:
    """Whether an error is about our account, in its code or type, or in its own words.

    An engine may repeat what a client sent: were that believed, any client could have every replica left alone.
    """
    code, message = "", detail
    if isinstance(detail, dict):
        code = f"{detail.get('code')} {detail.get('type')}".lower()
        message = detail.get("message") or detail.get("detail")
    own = _REPEATED.split(message, maxsplit=1)[0].lower() if isinstance(message, str) else ""
    return any(word in code or word in own for word in _ACCOUNT_WORDS)


def retry_after(headers: httpx.Headers) -> float | None:
    """Seconds until an upstream wants to be asked again; None where it does not say, or nothing we understand.

    `retry-after-ms` (OpenAI's) is exacter than `retry-after`, which is seconds or a date (RFC 9110, 10.2.3).
    """
    exact, value = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        if exact:
            return _bounded(float(exact) / 1000)
        return _bounded(float(value)) if value else None
    except ValueError:
        pass  # a date, or nonsense
    try:
        when = parsedate_to_datetime(value or "")
    except ValueError:
        return None
    return _bounded(when.timestamp() - time.time())


def _bounded(seconds: float) -> float | None:
    return max(0.0, seconds) if isfinite(seconds) else None
