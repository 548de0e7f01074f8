"""The supervisor on small processes of every temper."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.stack import supervisor as supervising
from headrace.stack.errors import PartFailed
from headrace.stack.part import Part
from headrace.stack.supervisor import Supervisor
from headrace.stack.tests.running import is_alive, wait_until


class Script(Part):
    """Python that is ready once it has written its pid to `file`."""

    ready_within = 10

    def __init__(self, name: str, body: str, file: Path) -> None:
        self.name = name  # type: ignore[misc]
        self.body = body
        self.file = file

    def command(self) -> list[str]:
        start = f"import os, pathlib, signal, subprocess, sys, time; file = pathlib.Path({str(self.file)!r})"
        return [sys.executable, "-c", f"{start}\n{self.body}"]

    def is_ready(self, pid: int) -> bool:
        return self.pid() == pid

    def pid(self) -> int:
        return int(self.file.read_text() or 0) if self.file.exists() else 0


STAYS = "file.write_text(str(os.getpid())); time.sleep(60)"
IS_DEAF = f"signal.signal(signal.SIGTERM, signal.SIG_IGN); {STAYS}"
HAS_A_CHILD = (
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
    f"file.with_suffix('.child').write_text(str(child.pid)); {STAYS}"
)


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def supervisor(tmp_path: Path, said: list[str]) -> Iterator[Supervisor]:
    supervisor = Supervisor(tmp_path / "logs", said.append)
    yield supervisor
    supervisor.stop(({"first"}, {"second"}), hurry=lambda: True)


def keep_on() -> None:
    """Nobody asked to stop."""


def test_it_waits_until_a_part_is_ready(supervisor: Supervisor, said: list[str], tmp_path: Path) -> None:
    part = Script("first", "time.sleep(0.3); " + STAYS, tmp_path / "pid")
    supervisor.start(part)
    supervisor.wait_ready({"first"}, keep_on)
    assert is_alive(part.pid())
    assert said[0].startswith("first     ready after ")


def test_it_claims_no_readiness_that_nothing_tells(supervisor: Supervisor, said: list[str], tmp_path: Path) -> None:
    part = Script("first", STAYS, tmp_path / "pid")
    part.is_waited_for = False  # type: ignore[misc]
    supervisor.start(part)
    supervisor.wait_ready({"first"}, keep_on)
    assert said == ["first     started"]


def test_it_gives_up_on_a_part_that_will_not_stay(
    supervisor: Supervisor, said: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervising, "BACKOFF", (0.0, 0.1))
    supervisor.start(Script("first", "sys.exit('no such luck')", tmp_path / "pid"))
    with pytest.raises(PartFailed, match=r"first ended with status 1, and has ended 3 times(?s:.)*no such luck"):
        supervisor.wait_ready({"first"}, keep_on)
    assert len(said) == 2


def test_it_ends_the_children_of_a_part_that_was_killed(supervisor: Supervisor, tmp_path: Path) -> None:
    part = Script("first", HAS_A_CHILD, tmp_path / "pid")
    supervisor.start(part)
    supervisor.wait_ready({"first"}, keep_on)
    parent, child = part.pid(), int((tmp_path / "pid.child").read_text())
    os.kill(parent, signal.SIGKILL)
    wait_until(lambda: poll(supervisor) and part.pid() not in {0, parent}, 10)
    assert not is_alive(child)


def poll(supervisor: Supervisor) -> bool:
    supervisor.poll()
    return True


def test_it_stops_in_order_and_waits(supervisor: Supervisor, tmp_path: Path) -> None:
    slow = "signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.4), file.write_text('done'), sys.exit()))\n"
    first = Script("first", slow + STAYS, tmp_path / "first")
    second = Script("second", STAYS, tmp_path / "second")
    for part in (second, first):
        supervisor.start(part)
    supervisor.wait_ready({"first", "second"}, keep_on)
    pid = second.pid()
    supervisor.stop(({"first"}, {"second"}), hurry=lambda: not is_alive(pid) and "done" not in first.file.read_text())
    assert first.file.read_text() == "done"
    assert not is_alive(pid)


def test_it_kills_what_does_not_stop_when_hurried(supervisor: Supervisor, tmp_path: Path) -> None:
    part = Script("first", IS_DEAF, tmp_path / "pid")
    supervisor.start(part)
    supervisor.wait_ready({"first"}, keep_on)
    soon = time.monotonic() + 0.3
    supervisor.stop(({"first"},), hurry=lambda: time.monotonic() > soon)
    assert not is_alive(part.pid())
    assert time.monotonic() - soon < part.stop_within / 2


def test_it_tries_again_where_a_restart_cannot_be_prepared(
    supervisor: Supervisor, said: list[str], tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    part = Script("first", STAYS, folder / "pid")
    part.prepare = folder.mkdir  # type: ignore[method-assign]  # fails the second time
    supervisor.start(part)
    supervisor.wait_ready({"first"}, keep_on)
    pid = part.pid()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: poll(supervisor) and any("could not be started: File exists" in line for line in said), 10)
    (folder / "pid").unlink()
    folder.rmdir()
    wait_until(lambda: poll(supervisor) and part.pid() not in {0, pid}, 10)
