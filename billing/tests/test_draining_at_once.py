"""Several drains at a time, and drains that are killed: every record once, every hour right."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from subprocess import PIPE

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Sum

from billing import drain
from billing.events import read_event
from billing.ledger import write_entries
from billing.models import UsageHour, UsageRecord
from billing.tests.stream import append, connect, is_empty, usage_event
from tenants.meters.holds import USAGE

pytestmark = pytest.mark.django_db(transaction=True)

# Starts once, and forks two drains for each line it reads; prints their process ids.
DRAINING = """
import os, signal, sys
import django, redis
django.setup()
from django.conf import settings
from billing import drain
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    for _ in range(2):
        child = os.fork()
        if child:
            print(child, flush=True)
            continue
        client = redis.Redis.from_url(settings.REDIS_URL)
        while True:
            drain.drain_once(client, most=20, abandoned_ms=0)
"""


def totals() -> tuple[int, int, int]:
    hours = UsageHour.objects.aggregate(requests=Sum("requests"), tokens=Sum("input_tokens"))
    return UsageRecord.objects.count(), hours["requests"], hours["tokens"]


def test_it_takes_each_event_once_with_four_drains_and_every_event_delivered_twice() -> None:
    events = [usage_event(tenant=f"t{number % 7}", key=f"k{number % 3}") for number in range(400)]

    def work(_: int) -> None:
        try:
            with connect() as client:
                while drain.drain_once(client, most=30, abandoned_ms=0).read:
                    pass
        finally:
            connection.close()

    with connect() as client:
        append(client, *events)
        random.Random(5).shuffle(events)
        append(client, *events)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        while drain.drain_once(client, abandoned_ms=0).read:
            pass
        assert is_empty(client)
    assert totals() == (400, 400, 40_000)


def test_it_waits_for_a_drain_that_writes_the_same_rows_in_another_order() -> None:
    entries = [read_event("1-0", json.dumps(usage_event(tenant=f"t{n % 5}")).encode()) for n in range(200)]
    barrier, written = threading.Barrier(3), []

    def work(seed: int) -> None:
        shuffled = random.Random(seed).sample(entries, len(entries))
        try:
            for _ in range(5):
                barrier.wait(30)
                written.append(write_entries(shuffled))
        finally:
            connection.close()

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))
    assert sum(written) == 200
    assert totals() == (200, 200, 20_000)


def test_it_loses_and_doubles_nothing_when_drains_are_killed() -> None:
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "headrace.settings"}
    environment["PYTHONPATH"] = os.pathsep.join([str(settings.ROOT), str(settings.ROOT / "platform")])
    arguments = [sys.executable, "-c", DRAINING]
    sent = 0
    with (
        connect() as client,
        subprocess.Popen(arguments, env=environment, stdin=PIPE, stdout=PIPE, text=True, bufsize=1) as forking,
    ):
        assert forking.stdin
        assert forking.stdout
        for _ in range(6):
            append(client, *(usage_event() for _ in range(1000)))
            sent += 1000
            forking.stdin.write("fork\n")
            drains = [int(forking.stdout.readline()) for _ in range(2)]
            deadline = time.monotonic() + 60
            while client.xlen(USAGE) > 700 and time.monotonic() < deadline:
                time.sleep(0.001)
            for process in drains:
                os.kill(process, signal.SIGKILL)
            while drain.drain_once(client, abandoned_ms=0).read:
                pass
        assert is_empty(client)
        forking.stdin.close()
    assert totals() == (sent, sent, sent * 100)


def test_it_leaves_a_batch_in_the_stream_when_somebody_holds_its_rows_too_long() -> None:
    holding, done = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("LOCK TABLE billing_usagehour IN ACCESS EXCLUSIVE MODE")
                holding.set()
                done.wait(30)
        finally:
            connection.close()

    with connect() as client, ThreadPoolExecutor(1) as pool:
        append(client, usage_event())
        future = pool.submit(hold)
        holding.wait(30)
        with pytest.raises(Exception, match="lock timeout"):
            drain.drain_once(client, abandoned_ms=0)
        done.set()
        future.result()
        assert drain.drain_once(client, abandoned_ms=0).written == 1
