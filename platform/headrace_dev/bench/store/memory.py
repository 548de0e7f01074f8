"""`bench memory`: what Redis keeps of a request that runs and of one that was settled; flat by rate x retention."""

import asyncio
from typing import Any

import redis
import redis.asyncio
from django.core.management.base import CommandParser

from headrace_core import store_keys
from headrace_dev.bench.benchmark import Benchmark, Report, Say, Target
from headrace_dev.bench.store import store
from tenants.meters import counters, holds

_ROUNDS = 5


class Memory(Benchmark):
    name = "memory"
    help = "Bytes of Redis a live and a settled request take, and what rates of requests come to."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--requests", type=int, default=5000, help="in each round")
        parser.add_argument("--live", type=int, default=10_000, help="requests at once, for the sum")

    def run(self, options: dict[str, Any], say: Say) -> Report:
        number = options["requests"]
        with store.valkey() as url, redis.Redis.from_url(url) as client:
            counters.rebuild(client, store.wanted(8))
            counters.trust(client, counters.run_id(client))
            asyncio.run(_round(url, client, 500))
            empty = _used(client)
            live, settled = asyncio.run(_round(url, client, number))
            after = []
            for turn in range(_ROUNDS):
                asyncio.run(_round(url, client, number))
                after.append(_used(client) - empty)
                say(f"round {turn + 1}: {after[-1]:,} bytes above the beginning, once all is forgotten")
        rows = [
            {
                "a second": rate,
                "bytes live": live / number,
                "bytes settled": settled / number,
                "MiB": (options["live"] * live / number + rate * holds.TOMBSTONE_SECONDS * settled / number) / 2**20,
            }
            for rate in (10, 100, 1000)
        ]
        grown = (after[-1] - after[0]) / number / (_ROUNDS - 1)
        targets = [Target("bytes that stay of a request whose retention is over", max(0.0, grown), 1)]
        told = {name: options[name] for name in ("requests", "live")}
        return Report(self.name, told | {"retention_seconds": holds.TOMBSTONE_SECONDS}, rows, targets, [])


async def _round(url: str, client: "redis.Redis", number: int) -> tuple[int, int]:
    """Bytes that so many live requests take, and as many that were settled and drained."""
    begin = _used(client)
    async with redis.asyncio.Redis.from_url(url) as own:
        events = await store.admit_many(own, number, 8)
        live = _used(client) - begin
        await store.settle_many(own, events)
        await own.xtrim(holds.USAGE, maxlen=0, approximate=False)
        settled = _used(client) - begin
        for event in events:  # as their time would
            await own.delete(store_keys.DONE + str(event.request_id))
    return live, settled


def _used(client: "redis.Redis") -> int:
    """Without the buffers of connections, which come and go."""
    stats: Any = client.memory_stats()
    return int(stats["total.allocated"]) - int(stats["clients.normal"]) - int(stats["aof.buffer"])
