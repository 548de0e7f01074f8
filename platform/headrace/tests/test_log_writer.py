"""What a process writes reaches its reader in order; one that reads nothing delays neither the work nor the stop."""

import os
import subprocess
import sys
import time

import pytest

# Each writes more than the queue takes, by the ways there are, and says at its end how long that took.
LOGGED = """
import logging, sys, time
from headrace_core import log_writer
log_writer.queue_standard_streams()
logging.basicConfig(handlers=[log_writer.QueuedHandler(1)], level="INFO", format="%(message)s")
began = time.monotonic()
for number in range(LINES):
    logging.info("%06d %s", number, "x" * 1000)
    print("y" * 100, file=sys.stderr)
open(sys.argv[1], "w").write(str(time.monotonic() - began))
"""
DIVERTED = """
import os, sys, time
from headrace_core import log_writer
log_writer.divert_descriptors()
began = time.monotonic()
for number in range(LINES):
    os.write(1, b"%06d %s\\n" % (number, b"x" * 1000))
    sys.stderr.write("y" * 100 + "\\n")
open(sys.argv[1], "w").write(str(time.monotonic() - began))
"""


def start(program: str, lines: int, took: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", program.replace("LINES", str(lines)), took],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )


@pytest.mark.parametrize("program", [LOGGED, DIVERTED])
def test_all_comes_in_order_where_it_is_read(program: str, tmp_path: os.PathLike[str]) -> None:
    process = start(program, 2000, f"{tmp_path}/took")
    out, err = process.communicate(timeout=30)
    assert [int(line[:6]) for line in out.splitlines()] == list(range(2000))
    assert err == (b"y" * 100 + b"\n") * 2000


@pytest.mark.parametrize("program", [LOGGED, DIVERTED])
def test_a_reader_that_reads_nothing_delays_nothing(program: str, tmp_path: os.PathLike[str]) -> None:
    process = start(program, 10_000, f"{tmp_path}/took")
    began = time.monotonic()
    assert process.wait(30) == 0  # though nobody has read a byte
    assert time.monotonic() - began < 25
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    process.stderr.close()


def test_a_child_that_was_forked_writes_for_itself(tmp_path: os.PathLike[str]) -> None:
    program = LOGGED + "import os\nchild = os.fork()\nlogging.info('999999 here')\nif child: os.waitpid(child, 0)\n"
    out, _ = start(program, 10, f"{tmp_path}/took").communicate(timeout=30)
    assert out.splitlines().count(b"999999 here") == 2
