"""What one web process refused, on its way to Redis: a batch is a hash `hr:refused:NAME`, and NAME a member of BATCHES.

A batch is told whole under a name of its own and never added to, so telling it again, after an answer that was lost,
changes nothing.
"""

import time
from collections import Counter
from typing import Any
from uuid import uuid4

import redis.asyncio

from headrace_core import store_keys

PREFIX = store_keys.REFUSED_BATCH
BATCHES = store_keys.REFUSED_BATCHES
# The time zones' offsets are multiples of it: the worker makes any tenant's hours of these.
QUARTER_SECONDS = 900
# Distinct numbers in a process while Redis is away; beyond them only those that are there go on.
MOST = 20_000
_KEPT_SECONDS = 7 * 24 * 3600


class Refusals:
    """This process's refusals since it last told of them."""

    def __init__(self, client: "redis.asyncio.Redis") -> None:
        self._redis = client
        self._counts: Counter[str] = Counter()
        self._telling: tuple[str, Counter[str]] | None = None

    def count(self, *, tenant: str, project: str, key: str, code: str) -> None:
        """A request of the key was refused with the error `code` just now. Does no I/O."""
        quarter = int(time.time()) // QUARTER_SECONDS * QUARTER_SECONDS
        field = f"{tenant} {project} {key} {code} {quarter}"
        if len(self._counts) < MOST or field in self._counts:
            self._counts[field] += 1

    async def tell(self) -> None:
        """Tell Redis what was counted. Raises redis.RedisError; the same batch is then told by the next call."""
        if self._telling is None:
            if not self._counts:
                return
            self._telling, self._counts = (uuid4().hex, self._counts), Counter()
        name, counts = self._telling
        numbers: dict[Any, Any] = dict(counts)
        async with self._redis.pipeline(transaction=True) as pipeline:
            pipeline.hset(PREFIX + name, mapping=numbers)
            pipeline.expire(PREFIX + name, _KEPT_SECONDS)
            pipeline.sadd(BATCHES, name)
            await pipeline.execute()
        self._telling = None
