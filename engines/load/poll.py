"""Asking one replica, for as long as it is in the fleet: its load each second, its health where nothing else tells it.

Each replica is asked by a task of its own, so that a slow one delays nobody else's figures.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

import aiohttp
import httpx
import msgspec

from engines.load.figures import Load
from engines.load.rates import Rates
from engines.load.starts import Starts
from engines.protocols import Upstream
from engines.protocols.reading import Reading

log = logging.getLogger("headrace.load")

PERIOD = 1.0
_LOAD_TIMEOUT = 2.0
_SLOW_PERIOD = 10.0
_ABOUT_PERIOD = 5.0
_HEALTH_PERIOD = 5.0
_HEALTH_TIMEOUT = 5.0
# A probe makes SGLang write a token: while real answers tell that it serves, there is none.
_ANSWERS_COUNT_FOR = 5.0
_FAILURES = (httpx.HTTPError, httpx.InvalidURL, aiohttp.ClientError, OSError, TimeoutError, ValueError)


class Poll:
    """What the questions to one replica brought. Times are of time.monotonic(), None: never.

    `probe`: "ok", "starting" (it answers, 503 and the like), "silent" (it takes connections and does not answer),
    "refused" (nothing listens), "" (not asked yet). `probes_failed`: how many in a row were not "ok".
    """

    def __init__(self, upstream: Upstream, client: httpx.AsyncClient) -> None:
        self.upstream = upstream
        self.load: Load | None = None
        self.load_at: float | None = None
        self.heard_at: float | None = None  # its server answered anything at all
        self.answered_at: float | None = None  # a real request was answered, as the gateways say
        self.probe = ""
        self.probes_failed = 0
        self.lacks: frozenset[str] = frozenset()  # the media its model does not take, as far as its engine says
        self._client = client
        self.starts = Starts()
        self._rates = Rates()
        self._missing: set[str] = set()
        self._slow_at = float("-inf")

    async def run(self) -> None:
        """Ask for ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._every(PERIOD, self.read_load))
            group.create_task(self._watch_health())
            if self.upstream.protocol.about_paths:
                group.create_task(self._every(_ABOUT_PERIOD, self.read_about))

    async def _every(self, period: float, ask: Callable[[], Awaitable[None]]) -> None:
        while True:
            began = time.monotonic()
            try:
                await ask()
            except Exception:  # the boundary of a loop: one strange answer must not end all later questions
                log.exception("asking %s failed", self.upstream.base_url)
            await asyncio.sleep(max(0.05, began + period - time.monotonic()))

    # --- load ---------------------------------------------------------------------------------------------------------
    async def read_load(self) -> None:
        """Read the load once; an engine that does not answer leaves the last as it is, to grow stale."""
        protocol = self.upstream.protocol
        answers: dict[str, bytes] = {}
        for path in self._paths(time.monotonic()):
            if (body := await self._load_page(path)) is not None:
                answers[path] = body
        if not answers:
            return
        try:
            reading = protocol.read_load(answers)
        except (ValueError, msgspec.MsgspecError) as error:
            log.debug("no load in what %s answers: %s", self.upstream.base_url, error)
            return
        if reading != Reading():
            self.load_at = time.monotonic()
            if self.starts.answered(self.load_at, reading):
                self._rates.begin_anew()
            self.load = self._rates.add(self.load_at, reading)

    def _paths(self, now: float) -> list[str]:
        protocol = self.upstream.protocol
        paths = [path for path in protocol.load_paths if path not in self._missing]
        slow = protocol.slow_path
        # An engine without the quick page is asked for the slow one instead.
        if slow is not None and (now - self._slow_at >= _SLOW_PERIOD or not paths):
            self._slow_at = now
            if slow not in self._missing:
                paths.append(slow)
            elif not paths:
                self._missing.clear()  # it may be another server by now
        return paths

    async def _load_page(self, path: str) -> bytes | None:
        try:
            answer = await self._get(path, _LOAD_TIMEOUT)
        except _FAILURES as error:
            self._failed(error)
            return None
        if answer.status_code in {404, 405, 501}:
            self._missing.add(path)
        return answer.content if answer.status_code == 200 else None

    async def read_about(self) -> None:
        """Ask once which media its model takes. What it said stands until it says otherwise, or nothing listens there
        any more."""
        for path in self.upstream.protocol.about_paths:
            try:
                answer = await self._get(path, _LOAD_TIMEOUT)
            except _FAILURES as error:
                self._failed(error)
                return
            if answer.status_code == 200:
                try:
                    self.lacks = self.upstream.protocol.read_lacks(answer.content)
                except (ValueError, msgspec.MsgspecError) as error:
                    log.debug("nothing on media in what %s answers: %s", self.upstream.base_url, error)
                    self.lacks = frozenset()
                return

    # --- health -------------------------------------------------------------------------------------------------------
    async def _watch_health(self) -> None:
        while True:
            if self.answered_at is None or time.monotonic() - self.answered_at > _ANSWERS_COUNT_FOR:
                await self.ask_health()
            await asyncio.sleep(_HEALTH_PERIOD if self.probe == "ok" else PERIOD)

    async def ask_health(self) -> None:
        """Probe once."""
        try:
            answer = await self._get(self.upstream.protocol.health_path, _HEALTH_TIMEOUT)
        except _FAILURES as error:
            self._failed(error)
            self._probed("refused" if _is_refused(error) else "silent")
        else:
            if not self.upstream.protocol.load_paths:
                self.starts.answered(time.monotonic(), Reading())
            self._probed("ok" if answer.status_code < 500 else "starting")

    def _failed(self, error: Exception) -> None:
        """It may be another server next time."""
        self._missing.clear()
        if _is_refused(error):
            self.starts.gone()
            self.lacks = frozenset()
            self._slow_at = float("-inf")  # what only the slow page tells may say that it is the same after all

    def _probed(self, result: str) -> None:
        self.probe = result
        self.probes_failed = 0 if result == "ok" else self.probes_failed + 1

    async def _get(self, path: str, seconds: float) -> httpx.Response:
        upstream = self.upstream
        async with asyncio.timeout(seconds):  # of the whole answer: httpx's own is for each piece of it
            answer = await self._client.get(upstream.base_url + path, headers=upstream.headers())
        self.heard_at = time.monotonic()
        return answer


def _is_refused(error: Exception) -> bool:
    """Whether nothing listens there, no such host is known, or nobody can be asked so. The transport wraps errors."""
    cause = error.__cause__ or error
    if isinstance(cause, aiohttp.ConnectionTimeoutError | TimeoutError):
        return False
    no_server = aiohttp.ClientConnectorError | aiohttp.InvalidURL | httpx.ConnectError | httpx.InvalidURL | ValueError
    return isinstance(cause, no_server)
