"""Metrics of what all processes share, read from Redis when they are asked for: the fleet, usage on its way, and what
the worker did last.

Whichever process answers says the same. What Redis does not tell is left out: an alert on its absence says so.
"""

from collections.abc import Callable
from typing import Any

import redis
import redis.asyncio
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from billing.dead_letters import BURIED
from billing.invoicing import overdue
from billing.ledger_check.nightly import DIFFERENCES
from engines.load.figures import Fleet, Load, State
from engines.load.picture import Picture
from headrace.worker.signs_of_life import RAN
from tenants.meters import aside
from tenants.meters.holds import USAGE

_REPLICA, _POOL = ("pool", "replica"), ("pool",)

# name -> (help, how it is read of a replica's load; None is left out)
_LOADS: dict[str, tuple[str, Callable[[Load], float | None]]] = {
    "headrace_replica_running": ("Requests in the batch.", lambda load: load.running),
    "headrace_replica_waiting": ("Requests in the engine's queue.", lambda load: load.waiting),
    "headrace_replica_waiting_tokens": ("Prompt tokens of those waiting.", lambda load: load.waiting_tokens),
    "headrace_replica_kv_used_ratio": ("Share of the KV cache in use, 0 to 1.", lambda load: load.kv_used),
    "headrace_replica_prefix_hit_ratio": ("Prefix hits of late, 0 to 1.", lambda load: load.prefix_hit_rate),
    "headrace_replica_output_tokens_per_second": ("Of late.", lambda load: load.output_tokens_per_second),
}


async def shared(client: "redis.asyncio.Redis", picture: Picture) -> list[Metric]:
    """The families as they stand; fewer where Redis does not answer."""
    families = of_fleet(picture.fleet, picture.of)
    try:
        families += await of_usage(client)
    except redis.RedisError:
        return families
    return families


def of_fleet(fleet: Fleet, load_of: Callable[[str], Load | None]) -> list[Metric]:
    """Replicas by pool and name, pools by name. A load that is unknown or stale is left out, never zero."""
    up = GaugeMetricFamily("headrace_replica_up", "1: its server runs.", labels=_REPLICA)
    ready = GaugeMetricFamily("headrace_replica_ready", "1: it takes new requests.", labels=_REPLICA)
    retractions = CounterMetricFamily(
        "headrace_replica_retractions", "Running requests put back into the queue for want of KV.", labels=_REPLICA
    )
    gauges = {name: GaugeMetricFamily(name, text, labels=_REPLICA) for name, (text, _) in _LOADS.items()}
    for full_name, report in fleet.replicas.items():
        pool, _, replica = full_name.partition("/")
        labels = (pool, replica)
        up.add_metric(labels, float(report.is_up))
        ready.add_metric(labels, float(report.state == State.READY))
        if (load := load_of(full_name)) is None:
            continue
        for name, (_, read) in _LOADS.items():
            if (value := read(load)) is not None:
                gauges[name].add_metric(labels, value)
        if load.retractions is not None:
            retractions.add_metric(labels, load.retractions)
    desired = GaugeMetricFamily("headrace_desired_replicas", "How many it would want.", labels=_POOL)
    serving = GaugeMetricFamily("headrace_pool_ready_replicas", "How many take new requests.", labels=_POOL)
    for pool, need in fleet.pools.items():
        desired.add_metric((pool,), need.desired)
        serving.add_metric((pool,), need.ready)
    return [up, ready, *gauges.values(), retractions, desired, serving]


async def of_usage(client: "redis.asyncio.Redis") -> list[Metric]:
    """Settlements that wait for the ledger, and those it could not take. Raises redis.RedisError."""
    async with client.pipeline(transaction=False) as pipeline:
        pipeline.xlen(USAGE)
        pipeline.xrange(USAGE, count=1)
        pipeline.time()
        pipeline.get(BURIED)
        pipeline.hgetall(RAN)
        pipeline.get(overdue.KEY)
        pipeline.get(DIFFERENCES)
        pipeline.hlen(aside.KEY)
        waiting, oldest, (seconds, _), buried, ran, noted, differences, set_aside = await pipeline.execute()
    age = max(0.0, int(seconds) - _milliseconds(oldest[0][0]) / 1000) if oldest else 0.0
    return [
        *of_worker(ran, overdue.decode(noted), differences, now=int(seconds)),
        GaugeMetricFamily("headrace_usage_waiting", "Settlements not yet in the ledger.", value=waiting),
        GaugeMetricFamily("headrace_usage_waiting_seconds", "Age of the oldest of them.", value=age),
        CounterMetricFamily("headrace_dead_letters", "Settlements the ledger could not take.", value=int(buried or 0)),
        GaugeMetricFamily("headrace_holds_aside", "Holds that no reaper here can settle.", value=set_aside),
    ]


def of_worker(
    ran: dict[bytes, bytes], waits: list[overdue.Waits] | None, differences: bytes | None, *, now: int
) -> list[Metric]:
    """How long ago each of the worker's tasks last ran to its end (`now`: epoch seconds), which invoices wait, and how
    many differences the last check of the books found."""
    ages = GaugeMetricFamily("headrace_task_age_seconds", "Since a task of the worker last ran.", labels=("task",))
    for task, said in ran.items():
        at = said.partition(b" ")[0]
        if at.isdigit():
            ages.add_metric((task.decode("utf-8", "replace"),), max(0.0, now - int(at) / 1000))
    late = GaugeMetricFamily("headrace_invoices_overdue", "Periods not closed, drafts not final.", labels=("reason",))
    for code, number in sorted(overdue.by_code(waits or ()).items()):
        late.add_metric((code,), number)
    books = GaugeMetricFamily("headrace_ledger_differences", "Differences that the last check of the ledger found.")
    if differences is not None:
        books.add_metric((), int(differences))
    return [ages, late, books]


def _milliseconds(entry: Any) -> int:
    """The time inside a stream entry's id."""
    return int(entry.partition(b"-")[0])
