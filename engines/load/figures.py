"""The shared picture of the fleet, as it stands in Redis: one JSON under `hr:load`."""

from enum import StrEnum

import msgspec

from headrace_core import store_keys

KEY = store_keys.LOAD
STALE_SECONDS = 3.0
# Without a collector the last states count for so long; then nothing is known.
KEPT_SECONDS = 30.0


class State(StrEnum):
    """STARTING: not yet seen to serve. READY: takes requests. DRAINING: finishes what it runs and gets nothing new,
    as the operator wants. EJECTED: it failed real requests. DOWN: nothing serves there."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    EJECTED = "ejected"
    DOWN = "down"


class Load(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one replica told of itself; None: its engine does not say.

    running, waiting: requests, whoever sent them. waiting_tokens: prompt tokens of those waiting, not yet computed.
    kv_used: 0..1 of kv_capacity tokens, held by running requests. prefix_hit_rate: 0..1, of late.
    retractions: since the engine started. output_tokens_per_second: of late.
    """

    running: int | None = None
    waiting: int | None = None
    waiting_tokens: int | None = None
    kv_used: float | None = None
    kv_capacity: int | None = None
    prefix_hit_rate: float | None = None
    retractions: int | None = None
    output_tokens_per_second: float | None = None


class Report(msgspec.Struct, omit_defaults=True):
    """One replica. `at` is when its load was read, in milliseconds of Redis's clock; None: never, or not told.

    weight: 0..1, how much of a ready replica's share of new requests it should get: it rises after a recovery.
    is_up: its server runs, so that its GPUs cost money. reason: why it is not ready, for people.
    ejections: how often it was ejected since it last did well; with it a next collector goes on.
    started: when its engine was last seen to have been started anew (engines/load/starts.py), as `at`; 0: not yet. Its
    prefix cache was empty then. lacks: the media that its model does not take, as its engine says.
    """

    state: State
    weight: float = 1.0
    is_up: bool = False
    at: int | None = None
    load: Load | None = None
    reason: str = ""
    since: int = 0
    ejections: int = 0
    started: int = 0
    lacks: tuple[str, ...] = ()


class Need(msgspec.Struct, omit_defaults=True):
    """How many replicas a pool would want (engines/load/scaling.py), beside how many it has."""

    desired: int
    up: int = 0
    ready: int = 0


class Fleet(msgspec.Struct, omit_defaults=True):
    """All replicas by `pool/replica`, and all pools. `at`: when it was published, as above."""

    at: int
    replicas: dict[str, Report] = {}
    pools: dict[str, Need] = {}
    v: int = 1


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Fleet).decode
