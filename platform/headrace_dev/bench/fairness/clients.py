"""The tenants of a run on a real engine: people, who come at random, and heaps, who ask again once answered."""

import asyncio
import json
import random
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field

import httpx

from headrace_dev.bench.traces.draws import whole
from headrace_dev.bench.traces.shape import Size

WORDS = ["river", "stone", "cloud", "light", "paper", "green", "house", "table", "round", "small", "water", "bread"]

_APART = 0.01  # seconds between the first requests of a heap
_FRAME = 57  # tokens of a request without a word, as the demo model counts them; each word is one


class Prompt:
    """What comes first is each one's own, so that nothing of it is in the prefix cache."""

    def __init__(self, source: random.Random, size: Size) -> None:
        self.tokens = max(_FRAME + 1, whole(source, size))
        words = " ".join(source.choices(WORDS, k=self.tokens - _FRAME))
        self.text = f"{source.random()} {words}. Tell a long story of it."


@dataclass
class Asked:
    """One streamed chat. Times are of time.monotonic(); `tokens` is when each output token came."""

    tenant: str
    at: float
    size: int  # tokens, as they were meant
    prompt: int = 0  # as the engine counts them; 0: it has not said
    tokens: list[float] = field(default_factory=list)

    def processed(self, begin: float, end: float) -> tuple[int, int]:
        """Prompt and output tokens done between the two moments."""
        is_read = bool(self.tokens) and begin <= self.tokens[0] < end
        return (self.prompt or self.size) if is_read else 0, sum(begin <= at < end for at in self.tokens)


class Clients:
    """All that ask in one run. `asked` fills while they do; `stop` ends them, whatever they wait for.

    What a tenant asks and when people come depend on the seed alone, not on who else asks. `size`: of a prompt, in
    tokens.
    """

    def __init__(self, url: str, model: str, seed: str) -> None:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        self._http = httpx.AsyncClient(base_url=url, timeout=600, trust_env=False, limits=limits)
        self._model, self._seed = model, seed
        self._tasks: set[asyncio.Task[None]] = set()
        self.asked: list[Asked] = []
        self.failed: list[str] = []

    def people(self, tenant: str, key: str, *, rate: float, size: Size, output: int) -> None:
        """`rate` come in a second (Poisson), whether the earlier are answered or not."""
        self._start(self._arrive(tenant, key, rate, size, output))

    def heap(self, tenant: str, key: str, *, at_once: int, size: Size, output: int, priority: str) -> None:
        """`at_once` are asked at any time."""
        for number in range(at_once):
            source = random.Random(f"{tenant} {number} {self._seed}")
            self._start(self._again(number * _APART, tenant, key, source, size, output, priority))

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._http.aclose()

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _arrive(self, tenant: str, key: str, rate: float, size: Size, output: int) -> None:
        source, due = random.Random(f"{tenant} {self._seed}"), time.monotonic()
        while True:
            due += source.expovariate(rate)
            await asyncio.sleep(due - time.monotonic())
            self._start(self._ask(tenant, key, Prompt(source, size), output, "interactive"))

    async def _again(
        self, after: float, tenant: str, key: str, source: random.Random, size: Size, output: int, priority: str
    ) -> None:
        await asyncio.sleep(after)
        while True:
            await self._ask(tenant, key, Prompt(source, size), output, priority)

    async def _ask(self, tenant: str, key: str, prompt: Prompt, output: int, priority: str) -> None:
        body = {
            "model": self._model,
            "messages": [{"role": "user", "content": prompt.text}],
            "max_tokens": output,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        headers = {"authorization": f"Bearer {key}", "x-headrace-priority": priority}
        one = Asked(tenant, time.monotonic(), prompt.tokens)
        self.asked.append(one)
        async with self._http.stream("POST", "/v1/chat/completions", json=body, headers=headers) as answer:
            if answer.status_code != 200:
                self.failed.append((await answer.aread()).decode()[:200])
                await asyncio.sleep(1)
                return
            async for line in answer.aiter_lines():
                if not line.startswith("data: {"):
                    continue
                event = json.loads(line.removeprefix("data: "))
                if usage := event.get("usage"):
                    one.prompt = usage["prompt_tokens"]
                if event.get("choices") and event["choices"][0]["delta"].get("content"):
                    one.tokens.append(time.monotonic())
