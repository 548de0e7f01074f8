"""`bench rebuild`: how long one command holds Redis while all budgets' counters are made anew under many live holds."""

import asyncio
import threading
import time
from typing import Any

import redis
import redis.asyncio
from django.core.management.base import CommandParser

from headrace_core import store_keys
from headrace_dev.bench.benchmark import Benchmark, Report, Say, Target
from headrace_dev.bench.figures import percentile
from headrace_dev.bench.store import store
from tenants.meters import counters

_LONGEST_MS, _SCRIPT_MS = 20.0, 2.0
_PIECE = 500  # as billing.budgets.counters makes them
_OF_ONE_REQUEST = 64  # the most budgets that one request counts in, by the quotas


class Rebuild(Benchmark):
    name = "rebuild"
    help = "The longest command of a rebuild of all budgets, what others wait meanwhile, and a request's own scripts."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--holds", type=int, default=10_000, help="live requests of one tenant")
        parser.add_argument("--budgets", type=int, default=1000)

    def run(self, options: dict[str, Any], say: Say) -> Report:
        with store.valkey() as url, redis.Redis.from_url(url) as client:
            wanted = store.wanted(max(options["budgets"], _OF_ONE_REQUEST))
            counters.rebuild(client, wanted)
            counters.trust(client, counters.run_id(client))
            scripts = asyncio.run(_scripts(url, client))
            say(f"admitting {options['holds']} requests")
            asyncio.run(_admit(url, options["holds"]))
            client.config_set("slowlog-log-slower-than", 0)
            client.config_set("slowlog-max-len", 1_000_000)
            client.slowlog_reset()
            begun = time.perf_counter()
            waits = _waits(url, client, wanted)
            seconds = time.perf_counter() - begun
            commands = [entry["duration"] / 1000 for entry in client.slowlog_get(1_000_000)]
        longest = max(commands)
        rows = [
            {
                "holds": options["holds"],
                "budgets": options["budgets"],
                "longest ms": longest,
                "in all ms": sum(commands),
                "seconds": seconds,
                "others' p99 ms": percentile(waits, 99),
                **scripts,
            }
        ]
        targets = [
            Target("longest command of a rebuild, ms", longest, _LONGEST_MS),
            Target(
                f"admit and settle with {_OF_ONE_REQUEST} budgets, ms of Redis", scripts["64 budgets ms"], _SCRIPT_MS
            ),
        ]
        return Report(self.name, {name: options[name] for name in ("holds", "budgets")}, rows, targets, [])


def _waits(url: str, client: "redis.Redis", wanted: list[counters.Wanted]) -> list[float]:
    """Rebuild, and ask Redis for something small all the while, from another thread; what each answer took, in ms."""
    waits: list[float] = []
    is_done = threading.Event()

    def ask() -> None:
        with redis.Redis.from_url(url) as own:
            while not is_done.is_set():
                begun = time.perf_counter()
                own.get(store_keys.EPOCH)
                waits.append((time.perf_counter() - begun) * 1000)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        for at in range(0, len(wanted), _PIECE):
            counters.rebuild(client, wanted[at : at + _PIECE])
    finally:
        is_done.set()
        thread.join()
    return waits


async def _scripts(url: str, client: "redis.Redis") -> dict[str, float]:
    """Milliseconds of Redis that admission and settlement of one request take, by the budgets it counts in."""
    found = {}
    async with redis.asyncio.Redis.from_url(url) as own:
        for budgets in (1, 8, _OF_ONE_REQUEST):
            await store.settle_many(own, await store.admit_many(own, 50, budgets))
            client.config_resetstat()
            await store.settle_many(own, await store.admit_many(own, 200, budgets))
            stats: Any = client.info("commandstats")
            found[f"{budgets} budgets ms"] = stats["cmdstat_evalsha"]["usec"] / 200 / 1000
    return found


async def _admit(url: str, number: int) -> None:
    async with redis.asyncio.Redis.from_url(url) as client:
        await store.admit_many(client, number, 8)
