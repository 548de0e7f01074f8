"""A drain is killed at each of its lines in turn, for real: the ledger comes out the same."""

import os
import subprocess
import sys
from subprocess import PIPE

import pytest
from django.conf import settings
from django.db.models import Sum

from billing import drain
from billing.models import DeadLetter, UsageHour, UsageRecord
from billing.tests.stream import append, connect, is_empty, usage_event

pytestmark = pytest.mark.django_db(transaction=True)

# For each number n that it reads, forks a drain that is killed at its n-th line; prints how it ended, and its lines.
DRAINING = """
import os, signal, sys
import django, redis
django.setup()
from django.conf import settings
from billing import dead_letters, drain, drain_lock, ledger, partitions
ours = {module.__file__ for module in (dead_letters, drain, drain_lock, ledger, partitions)}
for line in sys.stdin:
    child = os.fork()
    if child:
        print(os.waitpid(child, 0)[1], flush=True)
        continue
    fatal, reached = int(line), 0
    def each(frame, event, argument):
        global reached
        if event == "line":
            reached += 1
            if reached == fatal:
                os.kill(os.getpid(), signal.SIGKILL)
        return each
    def call(frame, event, argument):
        return each if frame.f_code.co_filename in ours else None
    client = redis.Redis.from_url(settings.REDIS_URL)
    sys.settrace(call)
    drain.drain_once(client, abandoned_ms=0)
    os._exit(0)
"""


def test_it_is_killed_at_every_line_and_the_ledger_is_the_same() -> None:
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "headrace.settings"}
    environment["PYTHONPATH"] = os.pathsep.join([str(settings.ROOT), str(settings.ROOT / "platform")])
    sent, bad, line, last = 0, 0, 0, 0
    with (
        connect() as client,
        subprocess.Popen(
            [sys.executable, "-c", DRAINING], env=environment, stdin=PIPE, stdout=PIPE, text=True, bufsize=1
        ) as forking,
    ):
        assert forking.stdin
        assert forking.stdout
        while last == 0 or line < 50:  # until one outlived its last line
            line += 1
            event = usage_event()
            append(client, event, event, b"bad %d" % line)
            sent, bad = sent + 1, bad + 1
            forking.stdin.write(f"{line}\n")
            status = int(forking.stdout.readline())
            assert status in {0, 9}, "killed, or at its end"
            last = line if status == 0 else 0
            drain.drain_once(client, abandoned_ms=0)  # what a dead drain had read is read again at once
            assert UsageRecord.objects.count() == sent, f"killed at line {line}"
            assert DeadLetter.objects.count() == bad, f"killed at line {line}"
        forking.stdin.close()
        assert is_empty(client)
    assert line > 80, "a drain has more lines than that"
    sums = UsageHour.objects.aggregate(requests=Sum("requests"), tokens=Sum("input_tokens"))
    assert sums == {"requests": sent, "tokens": sent * 100}
