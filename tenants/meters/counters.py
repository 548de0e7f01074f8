"""The counters of budgets: reading them, and setting them to what the ledger, the stream and the holds say.

A counter belongs to one window of one budget. It is made by `rebuild` alone, and trusted only on the server, in the
run, for which `trust` vouched.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import redis

from headrace_core import store_keys
from tenants.meters.rebuilding import MOST, Wanted, rebuild
from tenants.meters.scripts import TRUST

__all__ = ["MOST", "Wanted", "rebuild"]

WANTED = store_keys.BUDGETS_WANTED
YOUNG = store_keys.BUDGETS_YOUNG
EPOCH = store_keys.EPOCH
DOUBT = store_keys.EPOCH_DOUBTED
_DOUBT_SECONDS = 24 * 3600
PREFIX = store_keys.BUDGET
LET_GO_MS = 5000


class Counter(msgspec.Struct, frozen=True):
    """Nano-units spent by what has ended and held by what runs. made_ms: when it was made, by Redis's clock."""

    spent: int
    held: int
    made_ms: int


def key_of(budget: int, first_ms: int) -> str:
    return f"{PREFIX}{budget}:{first_ms // 1000}"


def read(client: "redis.Redis", keys: Sequence[str]) -> list[Counter | None]:
    """The counters as they stand; None for one that is missing or damaged."""
    with client.pipeline(transaction=False) as pipeline:
        for key in keys:
            pipeline.hmget(key, ["spent", "held", "made"])
        answers: list[Any] = pipeline.execute(raise_on_error=False)
    return [_counter(answer) for answer in answers]


def _counter(answer: Any) -> Counter | None:
    try:
        return Counter(*map(int, answer))
    except (TypeError, ValueError):
        return None


def wanted(client: "redis.Redis", *, most: int = 10_000) -> set[str]:
    """Counters that requests have missed and that were not made since: some of them, if they are more than `most`."""
    return {key.decode() for key in client.srandmember(WANTED, most) or ()}  # type: ignore[union-attr]


def forget_wanted(client: "redis.Redis", keys: Iterable[str]) -> None:
    """These are nobody's: no budget has such a counter."""
    if gone := list(keys):
        client.srem(WANTED, *gone)


def want(client: "redis.Redis", keys: Iterable[str]) -> None:
    """Ask for these counters to be made anew, if they are there; each counts on as it is until it has been."""
    if known := [key for key in keys if client.exists(key)]:
        client.sadd(WANTED, *known)


def want_all(client: "redis.Redis") -> None:
    """Ask for all counters there are to be made anew; each counts on as it is until it has been."""
    if keys := list(client.scan_iter(f"{PREFIX}*", count=1000)):
        client.sadd(WANTED, *keys)


def note_young(client: "redis.Redis", keys: Iterable[str]) -> None:
    """These counters are new; some process may not know yet that there is a budget to hold from."""
    if made := {key: _now_ms(client) for key in keys}:
        client.zadd(YOUNG, made)


def grown(client: "redis.Redis", *, ms: int) -> set[str]:
    """The counters that were new so long ago."""
    return {key.decode() for key in client.zrangebyscore(YOUNG, "-inf", _now_ms(client) - ms)}  # type: ignore[union-attr]


def forget_young(client: "redis.Redis", keys: Iterable[str]) -> None:
    if gone := list(keys):
        client.zrem(YOUNG, *gone)


def _now_ms(client: "redis.Redis") -> int:
    clock: Any = client.time()
    return int(clock[0]) * 1000 + int(clock[1]) // 1000


def run_id(client: "redis.Redis") -> str:
    """The server's name for its present run."""
    return str(client.info("server")["run_id"])


def is_trusted(client: "redis.Redis", run: str) -> bool:
    epoch: Any = client.get(EPOCH)
    return epoch is not None and epoch.decode() == run


def doubted_ms(client: "redis.Redis", run: str) -> int:
    """How long ago this was first asked of this run of the server, until `trust` or the next loss; 0: now."""
    now = _now_ms(client)
    since: Any = client.set(DOUBT + run, now, nx=True, get=True, ex=_DOUBT_SECONDS)
    return 0 if since is None else now - int(since)


def trust(client: "redis.Redis", run: str) -> bool:
    """Vouch for all counters, made in this run of the server; False if it is another by now."""
    client.delete(DOUBT + run)
    return bool(TRUST.call_sync(client, [EPOCH], [run]))


def let_go(client: "redis.Redis", keys: Sequence[str]) -> None:
    """Remove these counters soon; not at once, as some process may still hold from them."""
    with client.pipeline(transaction=False) as pipeline:
        for key in keys:
            pipeline.pexpire(key, LET_GO_MS, lt=True)
        pipeline.execute()


def drop(client: "redis.Redis", keep: Iterable[str]) -> int:
    """Remove all counters but those; how many went."""
    kept = set(keep)
    gone = [key for key in client.scan_iter(f"{PREFIX}*", count=1000) if key.decode() not in kept]
    return int(client.unlink(*gone)) if gone else 0
