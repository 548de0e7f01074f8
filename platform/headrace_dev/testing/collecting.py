"""The fleet's collector as a process of its own."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headrace_dev.testing.web import ROOT


@contextmanager
def collected() -> Iterator[None]:
    """`manage.py collect` runs meanwhile, and ends cleanly."""
    process = subprocess.Popen([sys.executable, str(Path(ROOT) / "manage.py"), "collect"])
    try:
        yield
    finally:
        process.terminate()
        try:
            assert process.wait(30) == 0
        finally:
            process.kill()
            process.wait()
