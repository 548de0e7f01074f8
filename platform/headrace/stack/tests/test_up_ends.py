"""How `manage.py up` ends: nothing is left running, nothing stored is lost."""

import os
import signal
import time
from pathlib import Path

from headrace.stack.tests.running import Up, is_alive


def test_it_leaves_nothing_running_when_it_is_killed_or_stopped(tmp_path: Path) -> None:
    up = Up(tmp_path / "home").wait_ready()
    demo, pids = up.demo, up.pids()
    assert len(pids) == 6
    os.kill(up.process.pid, signal.SIGKILL)
    up.process.wait()

    again = Up(up.home, port=up.port).wait_ready()
    assert not [pid for pid in pids if is_alive(pid)]
    assert again.demo == demo

    pids = again.pids()
    began = time.monotonic()
    assert again.stop() == 0
    assert time.monotonic() - began < 15  # 3 s on a machine that does nothing else
    assert not [pid for pid in pids if is_alive(pid)]
    assert not (up.home / "runtime.json").exists()
