"""A Valkey of the benchmark's own, and holds and counters in it as requests and the worker make them."""

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis
import redis.asyncio

from billing.usage import UsageEvent, iso, new_request_id
from headrace.stack import ports
from headrace.stack.parts.valkey import Valkey
from headrace.stack.process import Process
from tenants.meters import counters, holds
from tenants.meters.counters import Wanted
from tenants.meters.holds import Taken
from tenants.meters.meter import COST, Meter

AT_MS = 1_790_000_000_000
_LIMIT = 8 * 10**18
_AT_ONCE = 50


@contextmanager
def valkey() -> Iterator[str]:
    """Its URL."""
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder, ports.reserve() as holder:
        part = Valkey(Path(folder) / "valkey", ports.number(holder))
        process = Process(part, Path(folder))
        process.start()
        try:
            process.wait_ready()
            yield part.url
        finally:
            process.kill()


def wanted(number: int) -> list[Wanted]:
    """So many counters, by eights of one tenant: the requests here count in those of the first."""
    first, last = iso(AT_MS - 10**9), iso(AT_MS + 10**9)
    return [Wanted(counters.key_of(n, 0), f"tenant{n // 8}", "", "", "", first, last, 0, None) for n in range(number)]


def taken(budgets: int) -> Taken:
    meters = [Meter("budget", counters.key_of(n, 0), _LIMIT, COST, "monthly") for n in range(budgets)]
    return Taken(meters, {COST: 10**9})


async def admit_many(client: "redis.asyncio.Redis", number: int, budgets: int) -> list[UsageEvent]:
    """Admit so many requests that hold from so many budgets each; their events."""
    events: list[UsageEvent] = []

    async def admit() -> None:
        event = UsageEvent(
            request_id=str(new_request_id(AT_MS)), tenant="tenant0", project="web", key="k", model="m", target="t",
            replica="t/r1", currency="EUR", admitted_at=iso(AT_MS), cost="0.1", cost_nano=10**8,
        )  # fmt: skip
        record = holds._encode(event)
        await holds.admit(client, request_id=event.request_id, lease_ms=3_600_000, taken=taken(budgets), record=record)
        events.append(event)

    for at in range(0, number, _AT_ONCE):
        await asyncio.gather(*(admit() for _ in range(min(_AT_ONCE, number - at))))
    return events


async def settle_many(client: "redis.asyncio.Redis", events: list[UsageEvent]) -> None:
    for at in range(0, len(events), _AT_ONCE):
        await asyncio.gather(
            *(
                holds.settle(client, request_id=event.request_id, used={COST: 10**8}, event=holds._encode(event))
                for event in events[at : at + _AT_ONCE]
            )
        )
