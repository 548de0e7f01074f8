"""Whether Redis keeps what it is told: it holds the truth about money in flight, and is set up like a cache by some."""

from typing import Any

import redis

from headrace.console.settlement.section import BAD, GOOD, TIGHT, Section

_NEARLY_FULL = 0.8


def keeping(client: "redis.Redis") -> Section:
    memory: Any = client.info("memory")
    used, most, policy = int(memory["used_memory"]), int(memory["maxmemory"]), str(memory["maxmemory_policy"])
    is_logged = bool(client.info("persistence")["aof_enabled"])
    figure = f"{used / 2**20:.0f} MiB"
    detail = f"What it holds, of {most / 2**20:.0f} MiB that it may." if most else "What it holds, without a limit."
    verdict, todo = GOOD, ""
    if most and policy != "noeviction":
        verdict = BAD
        todo = (
            f"Its maxmemory-policy is {policy}: once it is full it forgets holds, counters of budgets and usage that is"
            " not yet in the ledger. Set it to noeviction."
        )
    elif not is_logged:
        verdict = TIGHT
        todo = (
            "It keeps no append-only file: its restart loses usage that is not yet in the ledger. Set appendonly yes."
        )
    elif most and used > _NEARLY_FULL * most:
        verdict = TIGHT
        todo = "When it is full, new requests are refused with 503. Give it more memory."
    return Section("What Redis keeps", verdict, figure, detail, todo)
