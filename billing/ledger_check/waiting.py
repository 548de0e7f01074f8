"""What is on its way to the ledger, and what could not get there. No difference, but nobody is billed for it yet."""

from pathlib import Path

import redis

from billing.drain import GROUP
from billing.models import DeadLetter
from tenants.meters.holds import HOLDS, USAGE


def waiting(client: "redis.Redis", spool: Path) -> dict[str, int]:
    """Counts: running holds, entries in the stream (of them read and not acknowledged), spooled words, dead letters."""
    return {
        "holds": int(client.zcard(HOLDS)),
        "stream": int(client.xlen(USAGE)),
        "unacknowledged": _pending(client),
        "spooled": sum(_lines(path) for path in spool.glob("*.jsonl")),
        "dead_letters": DeadLetter.objects.filter(replayed_at=None).count(),
    }


def _pending(client: "redis.Redis") -> int:
    try:
        return int(client.xpending(USAGE, GROUP)["pending"])
    except redis.ResponseError:
        return 0  # nothing was ever drained: there is no group


def _lines(path: Path) -> int:
    try:
        return path.read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0  # delivered meanwhile
