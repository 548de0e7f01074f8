"""A reader of the log that stalls costs the log some lines, and nobody an answer."""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.gateway.tests.calling import Answer, Place
from headrace.gateway.tests.conftest import QUICK
from headrace_dev.testing.upstream import ScriptedUpstream
from headrace_dev.testing.web import WebProcess
from tenants.models import Project

DROPPED = "headrace_log_lines_dropped_total"
LINES = "lines for stdout were dropped"
# A record carries what its client says of it: with so much in each, the queue is full after some 500 requests.
LABELS = {f"label-{number}": "x" * 512 for number in range(16)}


class Unread:
    """A web process whose stdout and stderr are one pipe, which nobody reads."""

    def __init__(self, server: str) -> None:
        self.reader, writer = os.pipe()
        self.web = WebProcess(Path(f"/proc/self/fd/{writer}"), server, **QUICK)
        os.close(writer)

    def read(self, seconds: float, until: bytes) -> bytes:
        """What comes until `until` has come."""
        deadline, text = time.monotonic() + seconds, b""
        os.set_blocking(self.reader, False)
        while until not in text:
            assert time.monotonic() < deadline, text[-2000:]
            try:
                text += os.read(self.reader, 2**20)
            except BlockingIOError:
                time.sleep(0.01)
        os.set_blocking(self.reader, True)
        return text


@pytest.fixture(params=["uvicorn", "daphne"])
def unread(request: pytest.FixtureRequest) -> Iterator[Unread]:
    process = Unread(request.param)
    try:
        process.web.wait_ready()
        yield process
    finally:
        process.web.kill()
        os.close(process.reader)


@pytest.fixture
def at(unread: Unread, upstream: ScriptedUpstream) -> Place:
    return Place(unread.web, upstream)


def ask(at: Place, secret: str | None = None) -> Answer:
    return at.chat(secret=secret, metadata=LABELS, max_tokens=1)


def test_every_tenant_is_served_while_nobody_reads_the_log(at: Place, unread: Unread) -> None:
    other = at.world.add_tenant("globex")
    _, secret = at.world.add_key(Project.objects.create(tenant=other, slug="app", name="App"))
    at.wait_known(at.world.model, secret=secret)
    before = at.metric(DROPPED, stream="stdout")  # by the processes of this home that were before
    for number in range(600):
        assert ask(at).status == 200
        if number % 100 == 0:
            assert ask(at, secret).status == 200
            assert at.send(b"", path="/healthz", method="GET").status == 200
    dropped = at.metric(DROPPED, stream="stdout") - before
    assert dropped > 0
    text = unread.read(20, LINES.encode())
    [told] = re.findall(rb"(\d+) " + LINES.encode(), text)
    assert int(told) == dropped
    unread.read(5, ask(at).id.encode())


def test_it_stops_in_time_though_nobody_reads_what_it_says(at: Place, unread: Unread) -> None:
    for _ in range(100):
        assert ask(at).status == 200
    began = time.monotonic()
    assert unread.web.stop(seconds=15) == 0
    assert time.monotonic() - began < 10
