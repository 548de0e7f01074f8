"""The hit rate that one cache as large as all replicas' together would have: no routing can do better for long.

Every prompt and answer is cached the moment it comes, before its own prefill even: a bound, not a system.
"""

from collections.abc import Sequence

from headrace_dev.bench.routing.prepared import Prepared
from headrace_dev.bench.traces import Shape
from headrace_dev.simulator.fleet.cache import BlockCache


def pooled_hit_rate(shape: Shape, requests: Sequence[Prepared]) -> float:
    """Of the prompt tokens asked for after the warm-up."""
    page = shape.replica.page
    cache = BlockCache(shape.replica.blocks * shape.replicas)
    hits = total = 0
    for one in requests:
        known = cache.match(one.chain, min((one.prompt - 1) // page, len(one.chain)))
        if one.asked.at >= shape.warmup:
            hits += known * page
            total += one.prompt
        known = cache.match(one.chain, len(one.chain))
        cache.lock(one.chain, 0, known)
        cache.take(len(one.chain) - known)
        cache.insert(one.chain, known, len(one.chain))
        cache.unlock(one.chain, len(one.chain))
    return hits / max(1, total)
