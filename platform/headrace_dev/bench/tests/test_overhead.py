"""A tiny run from end to end, through the command: real parts, a real gateway, real streams."""

import json
import os
import subprocess
import sys

import pytest
from django.conf import settings

pytestmark = pytest.mark.bench

TINY = {"repeat": 1, "tenants": 3, "rates": 20, "seconds": 1, "warmup": 0.5, "events": 20, "interval-ms": 2}
OPTIONS = [f"--{name}={value}" for name, value in TINY.items()]


def test_it_measures_headrace_beside_the_bare_upstream() -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "bench", "overhead", "--json", "--only", "headrace-uvicorn", *OPTIONS],
        cwd=settings.ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["benchmark"] == "overhead"
    assert report["parameters"]["rates"] == [20]
    direct, headrace = report["rows"]
    assert (direct["server"], direct["cpu_ms"]) == ("direct", 0)
    assert (headrace["server"], headrace["tenants"]) == ("headrace-uvicorn", 3)
    assert headrace["cpu_ms"] > 0
    assert headrace["redis_cpu_ms"] > 0
    assert headrace["ttft_p99_ms"] >= headrace["ttft_p50_ms"] > direct["delay_p50_ms"]
    open_targets = [target for target in report["verdict"]["targets"] if target["met"] is None]
    assert any("litellm" in target["text"].lower() for target in open_targets)
