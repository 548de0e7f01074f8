"""Thousands of requests while everything under them is killed: at the end, the books are right to the last token."""

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from decimal import Decimal

import pytest
import redis
from django.db import connections

from billing.models import Budget, DeadLetter
from headrace.tests.chaos.asks import Asks
from headrace.tests.chaos.books import audit
from headrace.tests.chaos.crowd import Crowd
from headrace.tests.chaos.monkey import Monkey
from headrace.tests.chaos.parts import Parts
from headrace_dev.testing.budgets import on_record
from headrace_dev.testing.invariants import eventually
from headrace_dev.testing.stores import Services
from headrace_dev.testing.upstream import ScriptedUpstream
from headrace_dev.testing.web import ROOT
from headrace_dev.testing.world import World, at_rest
from tenants.meters.holds import HOLDS, USAGE

pytestmark = pytest.mark.chaos
AT_ONCE = 48


def test_the_books_are_right_after_everything_was_killed(
    services: Services,
    world: World,
    secrets: list[str],
    upstream: ScriptedUpstream,
    parts: Parts,
    tight: tuple[Budget, str],
    seed: int,
    requests: int,
) -> None:
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s {text}", flush=True)

    say(f"CHAOS_SEED={seed} CHAOS_REQUESTS={requests}")
    connections.close_all()
    crowd = Crowd(world, secrets, parts.urls, Asks(seed), requests, AT_ONCE)
    monkey = Monkey(parts, crowd, seed, say)
    asyncio.run(storm(parts, crowd, monkey, seed))
    say(f"{len(crowd.seen)} asked, {crowd.done} answered; worker killed {len(parts.deaths)} times at lines of its own")

    come_to_rest(services, parts)
    upstream.wait_until_idle(20)
    say("at rest")
    entries = upstream.requests()
    books = audit(crowd.seen, entries, monkey.prices)
    say(f"records {dict(books.statuses)}, {books.exact} exact to the token, {books.corrections} corrections")
    say(f"{books.thawed} were reaped before their process went on")
    say(f"{books.uncounted} of liars were counted by nobody")
    say(f"{books.later} at the price of {monkey.prices.changed_at}")
    say(f"clients saw {dict(Counter(one.end for one in crowd.seen))}; cost {books.total}")
    for wrong in books.wrong[:50]:
        say(f"WRONG {wrong[:1000]}")
    spent, used_up = on_record(tight[0]), sum(one.end in {"budget_exhausted", "budget_held"} for one in crowd.seen)
    say(f"of a budget of {tight[0].amount:f} are spent {Decimal(spent).scaleb(-9)}; {used_up} were refused for it")
    assert not books.wrong
    assert books.uncounted < sum(books.statuses.values()) / 50
    assert tight[0].amount / 2 < Decimal(spent).scaleb(-9) <= tight[0].amount
    assert used_up > 0
    assert books.thawed > 0, "no process stood still past its lease with requests running"
    assert 0 < books.later < sum(books.statuses.values())
    assert not DeadLetter.objects.exists()
    assert sorted(monkey.done) == sorted(fault.__name__ for fault in monkey.plan())
    assert sum(monkey.flushed) > 0, "Valkey never lost everything with streams running"
    checked = manage("ledger", "check", "--json")
    report = json.loads(checked.stdout)
    say(f"ledger check: {[(one['name'], one['compared'], one['total']) for one in report['checks']]}")
    assert checked.returncode == 0, report
    assert report["waiting"] == dict.fromkeys(report["waiting"], 0)


async def storm(parts: Parts, crowd: Crowd, monkey: Monkey, seed: int) -> None:
    await parts.start()
    keeping = asyncio.create_task(parts.keep_worker(random.Random(f"{seed}/worker")))
    await asyncio.gather(crowd.run(), monkey.run())
    parts.is_mortal = False
    parts.worker.kill()
    while not parts.worker.is_running:  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    keeping.cancel()


def come_to_rest(services: Services, parts: Parts) -> None:
    """Wait until nothing is held, nothing waits in the stream, and no spool has a file."""
    with redis.Redis.from_url(services.redis_url) as client:

        def left() -> str:
            spooled = [path.name for path in (services.home / "spool").glob("*.jsonl")]
            return f"{client.zcard(HOLDS)} holds, {client.xlen(USAGE)} entries, spooled {spooled}" + (
                parts.worker.last_words()
            )

        eventually(lambda: left().startswith("0 holds, 0 entries, spooled []"), 60, left)
        at_rest(client)


def manage(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *arguments],
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
