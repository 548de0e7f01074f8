"""What a request takes: one `Meter` a limit, ready for the admit script."""

import msgspec

from headrace_core import store_keys

# The measures of a request's use. Every meter counts one of them.
REQUESTS = "requests"
INPUT_TOKENS = "input_tokens"
OUTPUT_TOKENS = "output_tokens"
CONCURRENCY = "concurrency"
COST = "cost"  # in 1e-9 units of the tenant's currency
# The most of it that one request, or one counter, is taken to have: near what a field of Redis can hold (2^63).
MOST_NANO = 9 * 10**18

# A replica's room is counted in tokens: those of prompts to prefill and outputs to decode.
ROOM = "room"
# Larger than any replica; Lua counts it exactly.
UNBOUNDED = 10**15


class Meter(msgspec.Struct, frozen=True):
    """One limit in one scope.

    kind: a kind of lua/kinds.lua or budgets.lua. key: its Redis key. limit: units a minute (bucket), at once (gauge) or
    in its window (budget). scope: how an error names it to the client: "key", "project", "tenant", or a budget's name.
    """

    kind: str
    key: str
    limit: int
    measure: str
    scope: str


# (limit's name on a tenant, project or key) -> (kind, measure)
LIMITS = {
    "requests_per_minute": ("bucket", REQUESTS),
    "input_tokens_per_minute": ("bucket", INPUT_TOKENS),
    "output_tokens_per_minute": ("bucket", OUTPUT_TOKENS),
    "concurrency": ("gauge", CONCURRENCY),
}


def meters_of(scope: str, name: str, limits: dict[str, int | None]) -> list[Meter]:
    """The meters of one scope: `name` is its immutable name in Redis keys, `limits` its limits (None = unlimited)."""
    return [
        Meter(kind, f"{store_keys.METER}{scope.partition(' ')[0]}:{name}:{measure}", limit, measure, scope)
        for limit_name, (kind, measure) in LIMITS.items()
        if (limit := limits.get(limit_name)) is not None
    ]


def room_of(replica: str, capacity: int | None) -> Meter:
    """The room of a replica that holds at most `capacity` tokens (None: any number)."""
    return Meter("room", room_key(replica), UNBOUNDED if capacity is None else capacity, ROOM, replica)


def room_key(replica: str) -> str:
    return store_keys.ROOM + replica
