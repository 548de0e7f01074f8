"""What became of real requests at each replica: counted by the gateways, added up in Redis, read by the collector.

A hash `hr:outcomes:POOL/REPLICA`: `ok` and `failed` count requests, `beats` seconds in which a stream delivered, and
`hard` and `slow` the failures since the last success: no connection, a broken answer or a 5xx, and deadlines passed.
Two gateways that write at once may lose the order of their own last seconds; a success that is seen late costs nothing.
"""

from collections.abc import Iterable, Sequence

import msgspec
import redis
import redis.asyncio

from engines.errors import BadAnswer, Disconnected, Failed, TimedOut, Unreachable, UpstreamError
from headrace_core import store_keys

_PREFIX = store_keys.OUTCOMES
_FORGOTTEN_AFTER = 3600
_FIELDS = ("ok", "failed", "beats", "hard", "slow")


class Counted(msgspec.Struct):
    """As the hash has it."""

    ok: int = 0
    failed: int = 0
    beats: int = 0
    hard: int = 0
    slow: int = 0


class Outcomes:
    """This process's counts since its last report; one pipelined write a second tells them, whatever the traffic."""

    def __init__(self, client: "redis.asyncio.Redis") -> None:
        self._redis = client
        self._counts: dict[str, Counted] = {}

    def answered(self, replica: str) -> None:
        """A request was answered, or began to be."""
        counted = self._of(replica)
        counted.ok += 1
        counted.hard = counted.slow = 0

    def failed(self, replica: str, error: BaseException) -> None:
        """A request ended with `error`. What is not the replica's fault, and a full queue, count for nothing."""
        counted = self._of(replica)
        if is_slow(error):
            counted.failed += 1
            counted.slow += 1
        elif is_hard(error):
            counted.failed += 1
            counted.hard += 1

    async def report(self, delivering: Iterable[str] = ()) -> None:
        """Tell what was counted; `delivering` are the replicas whose streams made progress. Raises RedisError, with
        nothing forgotten."""
        for replica in set(delivering):
            self._of(replica).beats = 1
        counts = self._counts
        if not counts:
            return
        self._counts = {}
        try:
            async with self._redis.pipeline(transaction=False) as pipeline:
                for replica, counted in counts.items():
                    _tell(pipeline, _PREFIX + replica, counted)
                await pipeline.execute()
        except redis.RedisError:
            for replica, counted in counts.items():
                _add(self._of(replica), counted)
            raise

    def _of(self, replica: str) -> Counted:
        return self._counts.setdefault(replica, Counted())


def _tell(pipeline: "redis.asyncio.client.Pipeline", key: str, counted: Counted) -> None:
    for name in ("ok", "failed", "beats"):
        if value := getattr(counted, name):
            pipeline.hincrby(key, name, value)
    if counted.ok:  # failures before the success are over
        pipeline.hset(key, mapping={"hard": counted.hard, "slow": counted.slow})
    else:
        for name in ("hard", "slow"):
            if value := getattr(counted, name):
                pipeline.hincrby(key, name, value)
    pipeline.expire(key, _FORGOTTEN_AFTER)


def _add(newer: Counted, older: Counted) -> None:
    """Put what could not be told before what was counted since."""
    if not newer.ok:
        newer.hard, newer.slow = newer.hard + older.hard, newer.slow + older.slow
    newer.ok, newer.failed = newer.ok + older.ok, newer.failed + older.failed
    newer.beats = max(newer.beats, older.beats)


def is_slow(error: BaseException) -> bool:
    return isinstance(error, TimedOut) and error.which in {"first_byte", "between_events"}


def is_hard(error: BaseException) -> bool:
    """Whether the replica itself failed: what another would probably have done better."""
    match error:
        case TimedOut():
            return error.which == "connect"
        case Failed():
            return error.status is None or error.status >= 500 or error.status == 200
        case UpstreamError():
            return isinstance(error, Unreachable | Disconnected | BadAnswer)
        case _:
            return False


async def read(client: "redis.asyncio.Redis", replicas: Sequence[str]) -> dict[str, Counted]:
    """What all gateways counted at `replicas`. Raises RedisError."""
    async with client.pipeline(transaction=False) as pipeline:
        for replica in replicas:
            pipeline.hmget(_PREFIX + replica, list(_FIELDS))
        rows = await pipeline.execute() if replicas else []
    return {r: Counted(*(int(value or 0) for value in row)) for r, row in zip(replicas, rows, strict=True)}


async def forgive(client: "redis.asyncio.Redis", replicas: Sequence[str]) -> None:
    """Count failures in a row anew: these were ejected for theirs."""
    async with client.pipeline(transaction=False) as pipeline:
        for replica in replicas:
            pipeline.hset(_PREFIX + replica, mapping={"hard": 0, "slow": 0})
        if replicas:
            await pipeline.execute()
