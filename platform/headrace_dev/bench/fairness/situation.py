"""One situation on a real engine: who asks for how long, what was asked, and what came of it."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

import httpx

from headrace_dev.bench.benchmark import BenchmarkFailed
from headrace_dev.bench.fairness.clients import Asked, Clients
from headrace_dev.bench.figures import percentile
from routing.fairness.order import cost

WARMUP = 4.0  # seconds, of no figure


@dataclass(frozen=True)
class Situation:
    """What was asked, and the two moments (of time.monotonic()) between which it counts."""

    asked: list[Asked]
    begin: float
    end: float

    def ttft_p99(self, tenant: str) -> float:
        """Seconds; a request without a token yet counts as it has waited."""
        asked = [one for one in self.asked if one.tenant == tenant and one.at >= self.begin]
        return percentile([(one.tokens[0] if one.tokens else self.end) - one.at for one in asked], 99)

    def served(self, tenant: str) -> float:
        """Virtual tokens a second."""
        done = sum(cost(*one.processed(self.begin, self.end)) for one in self.asked if one.tenant == tenant)
        return done / (self.end - self.begin)


async def situation(
    url: str, engine: str, model: str, seed: str, seconds: float, begin: Callable[[Clients], None]
) -> Situation:
    """`seconds` after a warm-up, from an engine that is idle and remembers nothing. Raises BenchmarkFailed where
    requests failed."""
    await idle(engine)
    clients = Clients(url, model, seed)
    began = time.monotonic()
    try:
        begin(clients)
        await asyncio.sleep(WARMUP + seconds)
        ended = time.monotonic()
    finally:
        await clients.stop()
    if len(clients.failed) > len(clients.asked) / 50:
        raise BenchmarkFailed(f"{len(clients.failed)} of {len(clients.asked)} failed: {clients.failed[0]}")
    return Situation(clients.asked, began + WARMUP, ended)


async def idle(engine: str) -> None:
    """Empty its prefix cache, which it refuses while anything runs: what one situation left behind is no part of the
    next."""
    async with httpx.AsyncClient(base_url=engine, timeout=10, trust_env=False) as client:
        for _ in range(150):
            if (await client.post("/flush_cache")).is_success:
                return
            await asyncio.sleep(0.2)
    raise BenchmarkFailed("SGLang does not become idle")
