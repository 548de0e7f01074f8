"""Holds that were set aside: no reaper here can settle them, as they are of another version, or broken.

They keep what they hold, and are looked at again every so often: by a reaper of a version that knows them they are
settled like any other. Until then they are shown (`manage.py holds`, `headrace_holds_aside`) and stop nobody.
"""

from typing import Any

import msgspec
import redis

from headrace_core import store_keys
from tenants.meters.holds import HOLDS
from tenants.meters.scripts import ASIDE

KEY = store_keys.HOLDS_ASIDE
AGAIN_MS = 60_000


class Aside(msgspec.Struct):
    """since: epoch milliseconds, when it was first met."""

    since: str
    why: str


def set_aside(client: "redis.Redis", request_id: str, why: str) -> bool:
    """Look at the hold again in AGAIN_MS; whether it was not set aside before. May be repeated."""
    return bool(ASIDE.call_sync(client, [HOLDS, KEY], [request_id, why[:500], AGAIN_MS]))


def read(client: "redis.Redis") -> dict[str, Aside]:
    """By request id, those that are still held; others are forgotten: they were settled meanwhile."""
    found: Any = client.hgetall(KEY)
    if not found:
        return {}
    with client.pipeline(transaction=False) as pipeline:
        for request_id in found:
            pipeline.zscore(HOLDS, request_id)
        scores = pipeline.execute()
    gone = [request_id for request_id, score in zip(found, scores, strict=True) if score is None]
    if gone:
        client.hdel(KEY, *gone)
    held = {request_id.decode(): said for request_id, said in found.items() if request_id not in set(gone)}
    return {request_id: _decoded(said) for request_id, said in held.items()}


def _decoded(said: bytes) -> Aside:
    try:
        return msgspec.json.decode(said, type=Aside)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Aside("0", "what was noted of it is of a form that this version does not know")
