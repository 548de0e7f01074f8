"""CPU time of a running process and all it started, on Linux."""

import os
import time
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def seconds(pid: int) -> float:
    """CPU seconds used so far by `pid`, all its threads, its descendants, and those of them that have ended.

    Raises ProcessLookupError when `pid` is gone.
    """
    total = own_seconds(pid) + _ended_children(pid)
    for child in descendants(pid):
        try:
            total += own_seconds(child) + _ended_children(child)
        except (ProcessLookupError, OSError):
            continue  # it ended meanwhile; its parent has its time
    return total


def descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, todo = [], [pid]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def own_seconds(pid: int) -> float:
    """CPU seconds of `pid` alone, all its threads. Raises ProcessLookupError.

    Nanosecond-exact: a process's CPU clock has the id (~pid << 3) | 2 (clock_getcpuclockid(3)).
    """
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError as error:
        raise ProcessLookupError(f"there is no process {pid}") from error


def _ended_children(pid: int) -> float:
    fields = _stat(pid)
    return (int(fields[13]) + int(fields[14])) / _TICK if fields else 0.0


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the third on; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return []
