"""The life of a hold: admit, move, renew, rehold, settle, correct; and the list of those that live.

The async verbs serve the data plane, the sync ones Celery and the command line; both call the same scripts.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec
import redis
import redis.asyncio

from headrace_core import store_keys
from tenants.meters.meter import COST, Meter
from tenants.meters.queueing import Waiter
from tenants.meters.scripts import (
    ADMIT,
    CORRECT,
    EXPIRED,
    GRACE,
    MOVE,
    REHOLD,
    REJOIN,
    RENEW,
    SETTLE,
    WITHDRAW,
    Argument,
)

HOLDS = store_keys.HOLDS
USAGE = store_keys.USAGE
REAPER = store_keys.REAPER
LIFE = store_keys.LIFE
# What a tombstone of a settled request keeps out is a repeated settlement, and an admission that comes late: both come
# while a reply is missed, and the ledger takes no record twice however late. (A budget that was charged twice for such
# a one is right again with the next rebuild.) Memory is rate x this.
TOMBSTONE_SECONDS = 3600
# A reaper's remembers what it charged: it outlives every late word of the request's own process, a frozen one, or one
# whose spool waited for Redis. There are few of them.
REAPED_SECONDS = 24 * 3600
# An admission that was given up can only come late from a buffer of the network or of a frozen Redis.
WITHDRAWN_SECONDS = 3600
_READ_AT_ONCE = 500

_encode = msgspec.json.encode


class Level(msgspec.Struct):
    """What one meter has left after a request was admitted: `free` units, all of them in `reset_ms`."""

    meter: Meter
    free: int
    reset_ms: int


class NotHeld(Exception):
    """Nothing was taken, because of `meter`; `levels` say how all stand.

    Refused             it has no room now: try again in `wait_ms`
      Held              only what running requests hold of it is in the way
      Rebuilding        a budget whose counter is being made
    Exhausted           a budget of which only `left` units are left, whatever is given back
    TooLarge            the request asks for more than it could ever give
    """

    def __init__(self, meter: Meter, amount: int, levels: list[Level], *, wait_ms: int = 0, left: int = 0) -> None:
        super().__init__(f"{meter.scope} {meter.measure}")
        self.meter, self.amount, self.levels, self.wait_ms, self.left = meter, amount, levels, wait_ms, left


class Refused(NotHeld):
    pass


class Held(Refused):
    pass


class Rebuilding(Refused):
    pass


class Exhausted(NotHeld):
    pass


class TooLarge(NotHeld):
    pass


_REFUSALS: dict[bytes, type[NotHeld]] = {
    b"limited": Refused,
    b"occupied": Held,
    b"rebuilding": Rebuilding,
    b"exhausted": Exhausted,
    b"too_large": TooLarge,
}


class NoRoom(Exception):
    """The limits would let it pass, but none of the rooms it was offered has any, and no more may wait for it."""


class NoTurn(Exception):
    """No room either, and its tenant has as many waiting as it may."""


class Ended(Exception):
    """The request of this id has been settled already; it cannot be admitted again."""


class Gone(Exception):
    """The hold has ended, or Redis lost it: the request cannot go on."""


class Taken(msgspec.Struct):
    """What a hold takes: its meters, and how much of each measure.

    rooms: meters of which it takes one, the first that has room, and how much of each; `room` is which one it was.
    """

    meters: list[Meter]
    amounts: dict[str, int]
    rooms: list[tuple[Meter, int]] = []
    room: int | None = None

    def as_json(self) -> bytes:
        """As the hold keeps it, for whoever settles: amounts are strings, since Lua's numbers end at 2^53."""
        rows = [[m.kind, m.key, str(m.limit), str(self.amounts[m.measure]), m.measure] for m in self.meters]
        return _encode(rows if self.room is None else [*rows, self._rooms()[self.room]])

    def _rooms(self) -> list[list[str]]:
        return [[m.kind, m.key, str(m.limit), str(amount), m.measure] for m, amount in self.rooms]

    def rooms_as_json(self) -> bytes:
        """The rooms in the same form."""
        return _encode(self._rooms())


def _keys(request_id: str) -> list[str]:
    return [store_keys.HOLD + request_id, HOLDS, store_keys.DONE + request_id]


async def admit(
    client: "redis.asyncio.Redis",
    *,
    request_id: str,
    lease_ms: int,
    taken: Taken,
    record: bytes,
    waiter: Waiter | None = None,
) -> list[Level]:
    """Take `taken` from all its meters or from none, and hold it for `lease_ms`. May be repeated by `request_id`.

    record: the usage event as it would be with no use at all, so that anybody can settle the hold. `taken.room` is set
    to the room it took; where none of several has any, `waiter` waits for one and `taken.room` stays None.
    Raises NotHeld, NoRoom, NoTurn, Ended; redis.RedisError when Redis does not answer.
    """
    arguments: list[Argument] = [request_id, lease_ms, record, taken.as_json(), taken.amounts.get(COST, "")]
    for meter in taken.meters:
        arguments += [meter.kind, meter.limit, taken.amounts[meter.measure]]
    arguments += [taken.rooms_as_json(), _encode(waiter) if waiter else ""]
    answer = await ADMIT.call(client, _keys(request_id) + [meter.key for meter in taken.meters], arguments)
    if answer[0] == b"held":
        taken.room = answer[1] - 1 if answer[1] else None
        return _levels(taken.meters, answer[2:])
    if answer[0] == b"no_room":
        raise NoRoom
    if answer[0] == b"no_turn":
        raise NoTurn
    raise _not_held(taken, answer) or Ended(request_id)


def _not_held(taken: Taken, answer: list[Any]) -> NotHeld | None:
    """What a script said that took nothing; None if it said something else."""
    if (refusal := _REFUSALS.get(answer[0])) is None:
        return None
    _, number, wait_ms, left, *levels = answer
    if number > len(taken.meters):
        assert taken.room is not None
        meter, amount = taken.rooms[taken.room]
    else:
        meter = taken.meters[number - 1]
        amount = taken.amounts[meter.measure]
    return refusal(meter, amount, _levels(taken.meters, levels), wait_ms=wait_ms, left=int(left))


def _levels(meters: list[Meter], answer: list[Any]) -> list[Level]:
    """`answer` has two figures a meter, or is empty where levels were not asked for."""
    return [Level(meters[at // 2], int(answer[at]), answer[at + 1]) for at in range(0, len(answer), 2)]


async def move(
    client: "redis.asyncio.Redis",
    *,
    request_id: str,
    step: int,
    taken: Taken,
    record: bytes,
    progress: bytes,
    priority: str = "",
) -> None:
    """Have the hold keep `taken` instead of what it holds, all of it or as before. May be repeated by `step`.

    A meter in both stays as it is held; others are given back unused, or taken. step: 1 for a request's first move, one
    more for each further. record, progress: what a reaper would settle it with from now on. priority: its class: in a
    pool where it has no room yet it does not pass those of its own class and above who wait; "": nobody.
    Raises NotHeld (the next step may go elsewhere), Gone; redis.RedisError when Redis does not answer.
    """
    hold, _, tombstone = _keys(request_id)
    rooms = [] if taken.room is None else [taken.rooms[taken.room][0]]
    keys = [hold, tombstone, *(meter.key for meter in [*taken.meters, *rooms])]
    answer = await MOVE.call(client, keys, [step, record, progress, taken.as_json(), priority])
    if answer[0] != b"moved":
        raise _not_held(taken, answer) or Gone(request_id)


async def rejoin(
    client: "redis.asyncio.Redis",
    *,
    request_id: str,
    step: int,
    taken: Taken,
    record: bytes,
    progress: bytes,
    waiter: Waiter,
) -> None:
    """Have the hold give its room back and wait for one of `taken.rooms`. May be repeated by `step`, as `move`.

    Raises NoRoom (as many wait as may: it has what it had), Gone; redis.RedisError when Redis does not answer.
    """
    hold, _, tombstone = _keys(request_id)
    arguments: list[Argument] = [request_id, step, record, progress, taken.rooms_as_json(), _encode(waiter)]
    answer = await REJOIN.call(client, [hold, tombstone], arguments)
    if answer[0] == b"no_room":
        raise NoRoom
    if answer[0] != b"waits":
        raise Gone(request_id)


async def withdraw(client: "redis.asyncio.Redis", request_ids: list[str]) -> None:
    """Undo admissions whose answer never came; one that Redis gets to only afterwards is refused. May be repeated."""
    await WITHDRAW.call(client, [HOLDS], [WITHDRAWN_SECONDS, *request_ids])


async def renew(
    client: "redis.asyncio.Redis", *, lease_ms: int, progress: dict[str, bytes], steps: dict[str, int] | None = None
) -> dict[str, str]:
    """Prolong the leases of `progress` ({request id: progress JSON, b"" = upstream not opened}); the state of each.

    steps: of those that moved, the step that led to where the progress was made; of one before the last it is ignored.
    """
    arguments: list[Argument] = [lease_ms]
    for request_id, state in progress.items():
        arguments += [request_id, (steps or {}).get(request_id, 0), state]
    answer = await RENEW.call(client, [HOLDS], arguments)
    return {request_id: word.decode() for request_id, word in zip(progress, answer, strict=True)}


class Lost(msgspec.Struct):
    """A running request whose hold Redis lost: what its hold was, and how far it is."""

    request_id: str
    taken: Taken
    record: bytes
    progress: bytes
    step: int


async def rehold(client: "redis.asyncio.Redis", *, lease_ms: int, lost: list[Lost]) -> dict[str, str]:
    """Put their holds back, beyond the limits if need be; the state of each, as of `renew`. May be repeated."""
    arguments: list[Argument] = [lease_ms]
    for one in lost:
        cost = one.taken.amounts.get(COST, "")
        arguments += [one.request_id, one.record, one.taken.as_json(), cost, one.step, one.progress]
    answer = await REHOLD.call(client, [HOLDS], arguments)
    return {one.request_id: word.decode() for one, word in zip(lost, answer, strict=True)}


async def life(client: "redis.asyncio.Redis", word: str) -> str:
    """The word by which Redis's data are known, kept with them: another than before means that they were lost.

    word: to be theirs, where they have none.
    """
    known: bytes | None = await client.set(LIFE, word, nx=True, get=True)  # type: ignore[assignment]
    return word if known is None else known.decode()


def _settle_arguments(
    request_id: str, used: dict[str, int], event: bytes, verdict: str, memory: str, taken: bytes
) -> tuple[list[str], list[Argument]]:
    amounts = _encode({measure: str(amount) for measure, amount in used.items()})
    seconds = REAPED_SECONDS if verdict == "reaped" else TOMBSTONE_SECONDS
    return [*_keys(request_id), USAGE], [request_id, amounts, event, seconds, verdict, memory, taken]


async def settle(
    client: "redis.asyncio.Redis", *, request_id: str, used: dict[str, int], event: bytes, taken: bytes = b"[]"
) -> str:
    """End the hold with what was used (by measure; a measure left out stays as held) and append `event`.

    taken: the hold's meters, as JSON, for the case that Redis has lost the hold: they are charged what was used.
    May be repeated. The answer: "settled", "ended" (had been), "lost" (there was no hold), or "reaped:..." (the reaper
    was first and remembers so much: say the rest by `correct`).
    """
    answer: bytes = await SETTLE.call(client, *_settle_arguments(request_id, used, event, "final", "", taken))
    return answer.decode()


async def correct(
    client: "redis.asyncio.Redis", *, request_id: str, tombstone: str, event: bytes, taken: bytes, more: dict[str, int]
) -> str:
    """Append the difference to what a reaper settled. `event` empty: there is none. May be repeated."""
    arguments: list[Argument] = [tombstone, event, TOMBSTONE_SECONDS, taken]
    arguments.append(_encode({measure: str(amount) for measure, amount in more.items()}))
    answer: bytes = await CORRECT.call(client, [store_keys.DONE + request_id, USAGE], arguments)
    return answer.decode()


def reap(client: "redis.Redis", *, request_id: str, used: dict[str, int], event: bytes, memory: str) -> str:
    """Settle a hold whose lease ran out, judged by Redis's clock.

    The answer: "settled", "ended", "alive", or "unknown" (its meters are of another version: nothing has changed).
    """
    answer: bytes = SETTLE.call_sync(client, *_settle_arguments(request_id, used, event, "reaped", memory, b"[]"))
    return answer.decode()


class ExpiredHold(msgspec.Struct):
    """A hold whose lease ran out. `progress` is empty when its upstream was never opened."""

    request_id: str
    record: bytes
    meters: bytes
    progress: bytes


def may_reap(client: "redis.Redis", *, lease_ms: int) -> bool:
    """Whether an expired lease means that its process is gone. Not for one lease after nobody, for as long, asked."""
    return bool(GRACE.call_sync(client, [REAPER], [lease_ms]))


def expired(client: "redis.Redis", *, most: int = 500) -> list[ExpiredHold]:
    """At most so many holds whose lease has run out, oldest first."""
    answer = EXPIRED.call_sync(client, [HOLDS], [most])
    return [ExpiredHold(answer[at].decode(), *answer[at + 1 : at + 4]) for at in range(0, len(answer), 4)]


def living(client: "redis.Redis") -> Iterator[dict[str, object]]:
    """Every hold that lives, as `manage.py holds` shows it: request_id, tenant, meters, expires_at (epoch ms)."""
    index = client.zscan_iter(HOLDS, count=_READ_AT_ONCE)
    while some := dict(islice(index, _READ_AT_ONCE)):
        yield from _living(client, some)


def _living(client: "redis.Redis", expiries: dict[bytes, float]) -> Iterator[dict[str, object]]:
    with client.pipeline(transaction=False) as pipeline:
        for request_id in expiries:
            pipeline.hmget(store_keys.HOLD.encode() + request_id, ["record", "meters"])
        answers: list[Any] = pipeline.execute(raise_on_error=False)
    for (request_id, expires), answer in zip(expiries.items(), answers, strict=True):
        # What stands there may be no hold.
        record, meters = (b"", b"") if isinstance(answer, redis.ResponseError) else answer
        if record is None or meters is None:
            continue  # settled since the index was read
        yield {
            "request_id": request_id.decode(),
            "tenant": _tenant(record),
            "meters": _shown(meters),
            "expires_at": int(expires),
        }


def _tenant(record: bytes | str) -> str:
    """Whose hold it is, as far as its record can be read."""
    try:
        return str(msgspec.json.decode(record)["tenant"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return "?"


def _shown(meters: bytes | str) -> list[dict[str, object]]:
    """The meters of a hold, which may be of another version, for people."""
    try:
        return [
            {"key": str(key), "measure": str(measure), "held": int(amount)}
            for _, key, _, amount, measure, *_ in msgspec.json.decode(meters)
        ]
    except (msgspec.DecodeError, ValueError, TypeError):
        return []
