"""How fast the stream becomes the ledger: from the entries in Redis to committed rows, records and hours."""

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from subprocess import PIPE, Popen

import psycopg
import redis

from headrace_dev.bench.benchmark import BenchmarkFailed, Say
from headrace_dev.bench.installation import Installation
from headrace_dev.bench.ledger.filling import fill


@dataclass(frozen=True)
class Drained:
    """One round: records a second from the start of the drains until the last had committed; CPU of all drains."""

    records: int
    seconds: float
    cpu: float

    @property
    def rate(self) -> float:
        return self.records / self.seconds


def measure(
    installation: Installation, *, tenants: int, events: int, processes: int, rounds: int, seed: int, say: Say
) -> list[Drained]:
    """Raises BenchmarkFailed when the ledger does not hold exactly what was in the stream."""
    found = []
    since = datetime.now(UTC)
    with redis.Redis.from_url(installation.redis_url) as client:
        for number in range(rounds):
            before = _rows(installation, since)
            fill(client, tenants=tenants, events=events, seed=seed + number)
            drained = _drain(installation, processes)
            records, requests = (now - then for now, then in zip(_rows(installation, since), before, strict=True))
            if (records, requests, drained.records) != (events, events, events):
                raise BenchmarkFailed(f"{events} events became {records} records, {requests} in the hours")
            say(f"round {number + 1}: {drained.rate:,.0f} records/s, {drained.cpu:.1f} s of the drains' CPU")
            found.append(drained)
    return found


def _drain(installation: Installation, processes: int) -> Drained:
    with ExitStack() as stack:
        drains = [stack.enter_context(_drainer(installation)) for _ in range(processes)]
        for drain in drains:
            assert drain.stdout
            if drain.stdout.readline() != "ready\n":
                raise BenchmarkFailed("a drain did not start")
        began = time.monotonic()
        for drain in drains:
            assert drain.stdin
            drain.stdin.write("\n")
            drain.stdin.flush()
        said = [json.loads(drain.stdout.readline()) for drain in drains if drain.stdout]
        seconds = time.monotonic() - began
    return Drained(sum(one["written"] for one in said), seconds, sum(one["cpu"] for one in said))


def _drainer(installation: Installation) -> "Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "headrace_dev.bench.ledger.drainer"],
        env={**os.environ, **installation.environment},
        stdin=PIPE,
        stdout=PIPE,
        text=True,
    )


def _rows(installation: Installation, since: datetime) -> tuple[int, int]:
    """Records in the ledger, and requests in its hours, of now: a seeded ledger has millions from before."""
    with psycopg.connect(installation.database_url, autocommit=True) as connection:
        row = connection.execute(
            "SELECT (SELECT count(*) FROM billing_usagerecord WHERE admitted_at >= %(since)s), (SELECT"
            " coalesce(sum(requests), 0)::bigint FROM billing_usagehour WHERE hour > %(since)s - interval '1 hour')",
            {"since": since},
        ).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])
