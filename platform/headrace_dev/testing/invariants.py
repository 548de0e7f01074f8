"""What must hold after every test, and how to see it from outside: in Redis, in the stream, in /proc."""

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import redis
from django.conf import settings

from billing.settlement import reap_expired
from headrace_core import store_keys
from headrace_dev.testing.upstream import ScriptedUpstream
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World, at_rest
from tenants.meters import holds


def events(valkey: "redis.Redis", world: World) -> list[dict[str, Any]]:
    """The usage events of the world's model that wait to be drained, in the order they were appended."""
    entries: Any = valkey.xrange(holds.USAGE)
    found = [json.loads(fields[b"e"]) for _, fields in entries]
    return [event for event in found if event["model"] == world.model]


def settled(valkey: "redis.Redis", world: World, requests: int, *, seconds: float = 10) -> list[dict[str, Any]]:
    """Wait until `requests` requests are on record; their events. Each is there once, and nothing is held any more."""
    eventually(lambda: len(parts(valkey, world, 0)) >= requests, seconds, lambda: str(parts(valkey, world, 0)))
    at_rest(valkey, seconds)
    found = events(valkey, world)
    counted = Counter((event["request_id"], event["part"]) for event in found)
    assert not [key for key, times in counted.items() if times > 1], "an event was appended twice"
    assert len([part for _, part in counted if part == 0]) == requests
    for event in found:
        if event["part"] == 0:
            assert min(event[name] for name in event if name.endswith("_tokens")) >= 0, event
            assert event["cached_input_tokens"] <= event["input_tokens"], event
    inputs, cached, outputs = (charged(found, f"{name}_tokens") for name in ("input", "cached_input", "output"))
    assert all(0 <= cached[name] <= inputs[name] and outputs[name] >= 0 for name in inputs), found
    return found


def parts(valkey: "redis.Redis", world: World, part: int) -> list[dict[str, Any]]:
    return [event for event in events(valkey, world) if event["part"] == part]


def progress(valkey: "redis.Redis") -> dict[str, int]:
    """Output tokens by request, as the holds have them."""
    found = {}
    for key in valkey.scan_iter(f"{store_keys.HOLD}*"):
        if said := valkey.hget(key, "progress"):
            found[key.decode().removeprefix(store_keys.HOLD)] = json.loads(said)["output_tokens"]
    return found


def charged(events: Iterable[dict[str, Any]], measure: str) -> Counter[str]:
    """Tokens by request, corrections added."""
    total: Counter[str] = Counter()
    for event in events:
        total[event["request_id"]] += event[measure]
    return total


def debt(valkey: "redis.Redis", key: str, measure: str, limit: int) -> float:
    """How many units of a token bucket are taken at this moment (lua/kinds.lua)."""
    stored: Any = valkey.hmget(f"{store_keys.METER}key:{key}:{measure}", ["debt", "at"])
    if stored[0] is None:
        return 0.0
    clock: Any = valkey.time()
    now = int(clock[0]) * 1000 + int(clock[1]) // 1000
    return max(0.0, float(stored[0]) - max(0, now - int(stored[1])) * limit) / 60_000


def reaped(valkey: "redis.Redis", requests: int, *, lease_seconds: float = 1.5) -> None:
    """Reap, as Celery does every few seconds, until so many requests are settled by it."""
    done = 0
    deadline = time.monotonic() + 15
    while done < requests:
        done += reap_expired(valkey, lease_seconds=lease_seconds)
        assert time.monotonic() < deadline, f"{done} of {requests} were reaped"
        time.sleep(0.1)


def eventually(
    check: Callable[[], object], seconds: float = 10, tell: Callable[[], str] = lambda: "it never came true"
) -> float:
    """Wait until `check` is true; how long that took. Raises AssertionError with what `tell` says."""
    began = time.monotonic()
    while not check():
        assert time.monotonic() - began < seconds, tell()
        time.sleep(0.02)
    return time.monotonic() - began


def idle(upstream: ScriptedUpstream, seconds: float) -> float:
    """Wait until the upstream works for nobody, `seconds` at most (and what a busy test machine adds)."""
    return upstream.wait_until_idle(seconds + 1.0)


# --- a process from outside -------------------------------------------------------------------------------------------
def descriptors(web: WebProcess) -> int:
    """How many files and sockets the process has open."""
    return len(os.listdir(f"/proc/{web.pid}/fd"))


def sockets(web: WebProcess) -> int:
    """How many TCP sockets it has open, without its pool of connections to Redis, which only grows."""
    return len([remote for _, remote in _ports(web) if remote != urlsplit(settings.REDIS_URL).port])


def clients(web: WebProcess) -> int:
    """How many clients are connected."""
    return len(peers(web))


def peers(web: WebProcess) -> set[int]:
    """The ports of the clients that are connected."""
    return {remote for local, remote in _ports(web) if local == web.port and remote}


def _ports(web: WebProcess) -> list[tuple[int, int]]:
    """Of each of its TCP sockets, the local and the remote port."""
    mine = set()
    for file in Path(f"/proc/{web.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            mine.add(os.readlink(file).removeprefix("socket:[").removesuffix("]"))
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return [(_port(row[1]), _port(row[2])) for row in rows if row[9] in mine]


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)


def memory(web: WebProcess) -> int:
    """Its resident memory in bytes."""
    pages = int(Path(f"/proc/{web.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def warnings(web: WebProcess) -> list[str]:
    """What it logged as warnings and errors."""
    return [line for line in web.log.read_text().splitlines() if " WARNING " in line or " ERROR " in line]
