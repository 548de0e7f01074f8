"""A tiny run from end to end, through the command: a simulated fleet, a real Headrace, real streams."""

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from django.conf import settings

from headrace_dev.bench.routing.tests import small

pytestmark = pytest.mark.bench

OPTIONS = ["--only", "headrace prefix", "--seeds", "1"]


def test_it_replays_a_trace_through_headrace(tmp_path: Path) -> None:
    shape = small.shape(seconds=6.0, warmup=1.0, tenants=2, scale=0.5, max_tokens=300)
    hot = msgspec.structs.replace(shape.shared, hot=(2.0, 4.0))
    trace = tmp_path / "trace.yaml"
    trace.write_bytes(msgspec.yaml.encode(msgspec.structs.replace(shape, shared=hot)))
    done = subprocess.run(
        [sys.executable, "manage.py", "bench", "routing", "--json", *OPTIONS, "--trace", str(trace)],
        cwd=settings.ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    (row,) = report["rows"]
    assert row["router"] == "headrace prefix_aware"
    assert row["failed"] == 0, done.stderr
    assert row["requests"] > 20
    assert row["hit_rate"] > 0.3
    assert 0 < row["ttft_p50"] < 5
    assert row["imbalance"] >= 1
    assert report["parameters"]["seeds"] == 1
