"""The clients: so many at a time, each asking, reading, leaving, and asking again what was refused."""

import asyncio
import random
from dataclasses import dataclass, field

from headrace.tests.chaos.asks import Ask, Asks, again
from headrace_dev.testing.clients import Caller
from headrace_dev.testing.world import World

# Answers to requests that were never admitted: the same is asked again.
REFUSED = frozenset(
    {
        "redis_unavailable",
        "no_capacity",
        "starting",
        "rate_limit_exceeded",
        "budget_rebuilding",
        "budget_held",
        "unreached",
    }
)


@dataclass
class Seen:
    """What a client saw of its request. end: DONE, whole, left, cut, unreached, or an error's code."""

    ask: Ask
    server: str
    status: int = 0
    request_id: str = ""
    events: int = 0
    end: str = ""

    @property
    def was_refused(self) -> bool:
        """By the gateway, as far as a client can tell: an upstream that is full looks the same."""
        return self.end in REFUSED and self.status != 200 and not self.ask.is_refused


@dataclass
class Crowd:
    """`urls` are those of the web processes, by server, as they stand. While `gate` is closed nobody asks anew."""

    world: World
    secrets: list[str]
    urls: dict[str, str]
    asks: Asks
    number: int
    at_once: int
    seen: list[Seen] = field(default_factory=list)
    asked: int = 0
    done: int = 0
    may_end: bool = False
    running: dict[str, Seen] = field(default_factory=dict)
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Ask until `number` requests were answered other than by a refusal, and on until it `may_end`."""
        self.gate.set()
        await asyncio.gather(*(self._client(random.Random(f"{self.asks.seed}/{n}")) for n in range(self.at_once)))

    async def keep_open(self, number: int, until: asyncio.Event) -> None:
        """So many streams of a minute, whose clients leave when it is time, however long that takes."""
        rng = random.Random(f"{self.asks.seed}/{len(self.seen)}")
        script = {"tokens": 1000, "interval_ms": 60, "usage": "asked", "prompt_tokens": 50, "cached_tokens": 10}
        names = [f"long{len(self.seen)}x{n}" for n in range(number)]
        asking = [
            asyncio.create_task(self._once(Ask(name, stream=True, script=script), rng, is_late=True)) for name in names
        ]
        await until.wait()
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    async def _client(self, rng: random.Random) -> None:
        while self.asked < self.number or not self.may_end:
            self.asked += 1
            ask, tries = self.asks.next(), 0
            while (await self._once(ask, rng)).was_refused:
                tries += 1
                await asyncio.sleep(rng.uniform(0.1, 0.6))
                ask = again(ask, tries)
            self.done += 1

    async def _once(self, ask: Ask, rng: random.Random, *, is_late: bool = False) -> Seen:
        if not is_late:
            await self.gate.wait()
        server = rng.choice(sorted(self.urls))
        seen = Seen(ask, server)
        self.seen.append(seen)
        self.running[ask.name] = seen
        try:
            async with asyncio.timeout(90):
                await self._ask(seen, rng.choice(self.secrets))
        except (ConnectionError, asyncio.IncompleteReadError):
            seen.end = "cut" if seen.status else "unreached"
        except asyncio.CancelledError:
            seen.end = "left"
            raise
        finally:
            del self.running[ask.name]
        return seen

    async def _ask(self, seen: Seen, secret: str) -> None:
        ask = seen.ask
        caller = await Caller.to(self.urls[seen.server])
        try:
            fields = {"content": ask.content, "stream": ask.stream, "max_tokens": 1000}
            await caller.ask(self.world, secret=secret, name=ask.name, **fields)
            seen.end = "cut"  # from here on it may be admitted
            seen.status = -1
            leaving = ask.leaves_after == 0 or (ask.leaves_after is not None and not ask.stream)
            try:
                async with asyncio.timeout(ask.leaves_in if leaving else None):
                    await self._read(caller, seen)
            except TimeoutError:
                if not leaving:
                    raise
                seen.end = "left"
        finally:
            await caller.leave(reset=ask.resets)

    async def _read(self, caller: Caller, seen: Seen) -> None:
        head = await caller.head()
        seen.status, seen.request_id = head.status, head.headers.get("x-request-id", "")
        if head.status != 200:
            seen.end = await caller.error()
        elif not seen.ask.stream:
            await caller.body()
            seen.end = "whole"
        else:
            await self._read_stream(caller, seen)

    async def _read_stream(self, caller: Caller, seen: Seen) -> None:
        while True:
            if seen.events and seen.events == seen.ask.leaves_after:
                seen.end = "left"
                return
            data = await caller.event()
            if data == "[DONE]":
                seen.end = "DONE"
                return
            if data.startswith('{"error":'):
                seen.end = data.partition('"code":"')[2].partition('"')[0]
                return
            seen.events += '"content":"tok' in data
