"""The real SGLang, for benchmarks: the one at SGLANG_URL, or this machine's own, which `make sglang` sets up."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from headrace.stack import ports
from headrace.stack.parts.engine import SGLang
from headrace.stack.process import Process
from headrace_dev.bench.benchmark import Say


@contextmanager
def real_engine(say: Say, *flags: str) -> Iterator[str]:
    """Its URL. flags: of one that is started here. Raises StackError."""
    if url := os.environ.get("SGLANG_URL"):
        yield url.rstrip("/")
        return
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder, ports.reserve() as holder:
        part = SGLang(ports.number(holder), settings.ROOT / ".venv-sglang", *flags)
        process = Process(part, Path(folder))
        say("starting SGLang, which takes a minute")
        try:
            process.start()
            process.wait_ready()
            yield part.url
        finally:
            process.stop()
