"""Faults between a web process and its Redis: a proxy that loses replies after their commands ran, freezes, or cuts."""

import asyncio
import threading
from collections import Counter
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from tenants.meters.scripts import Script


class RedisProxy:
    """A TCP proxy in a thread of its own. `url` is what a process under test gets as REDIS_URL.

    `lose(script, n)`: the next n replies to that script never arrive, though it ran; `lost` counts them, and their
    connections end or, if `silent`, stay. `freeze`: connections stay, nothing passes. `cut`: they end, new ones are
    refused. `mend` undoes all of it.
    """

    def __init__(self, redis_url: str) -> None:
        self._target = urlsplit(redis_url)
        self._loop = asyncio.new_event_loop()
        self._passing = asyncio.Event()
        self._passing.set()
        self._is_cut = False
        self._to_lose: Counter[str] = Counter()
        self._marks: dict[str, tuple[bytes, bytes]] = {}  # how a call of each script looks, by name and by source
        self._is_silent = False
        self.lost: Counter[str] = Counter()
        self._links: set[asyncio.Task[None]] = set()
        self._server = self._loop.run_until_complete(asyncio.start_server(self._link, "127.0.0.1", 0))
        self.port = int(self._server.sockets[0].getsockname()[1])
        self.url = self._target._replace(netloc=f":{self._target.password}@127.0.0.1:{self.port}").geturl()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    # --- the faults ---------------------------------------------------------------------------------------------------
    def lose(self, script: Script, replies: int = 1, *, silent: bool = False) -> None:
        self._is_silent = silent
        self._marks[script.sha] = (script.sha.encode(), script.source.encode()[-300:])
        self._to_lose[script.sha] = replies
        self.lost[script.sha] = 0

    def freeze(self) -> None:
        self._do(self._passing.clear)

    def cut(self) -> None:
        self._do(self._cut)

    def mend(self) -> None:
        self._to_lose.clear()
        self._is_cut = False
        self._do(self._passing.set)

    def _do(self, what: object) -> None:
        done = threading.Event()

        def run() -> None:
            what()  # type: ignore[operator]
            done.set()

        self._loop.call_soon_threadsafe(run)
        done.wait(5)

    def _cut(self) -> None:
        self._is_cut = True
        for link in self._links:
            link.cancel()

    # --- a connection -------------------------------------------------------------------------------------------------
    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = asyncio.current_task()
        assert link is not None
        self._links.add(link)
        try:
            if not self._is_cut:
                await self._pass_on(reader, writer)
        except (asyncio.CancelledError, ConnectionError):
            return  # cut, or one end is gone
        finally:
            self._links.discard(link)
            writer.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = await asyncio.open_connection(self._target.hostname, self._target.port)
        asked: list[str] = []  # the script whose reply is awaited: clients here have one command under way
        ways = [
            asyncio.ensure_future(self._ask(reader, server[1], asked)),
            asyncio.ensure_future(self._answer(server[0], writer, asked)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            server[1].transport.abort()

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: list[str]) -> None:
        while data := await reader.read(2**18):
            await self._passing.wait()
            asked[:] = [sha for sha in self._to_lose if any(mark in data for mark in self._marks[sha])]
            writer.write(data)
            await writer.drain()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: list[str]) -> None:
        while data := await reader.read(2**18):
            await self._passing.wait()
            if asked and self._to_lose[asked[0]] > 0 and not data.startswith(b"-NOSCRIPT"):
                self._to_lose[asked[0]] -= 1
                self.lost[asked[0]] += 1
                if self._is_silent:
                    continue
                return
            writer.write(data)
            await writer.drain()

    async def _close(self) -> None:
        self._server.close()
        for link in list(self._links):
            link.cancel()
        await asyncio.gather(*self._links, return_exceptions=True)
