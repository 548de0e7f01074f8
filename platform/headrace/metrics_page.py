"""`python -m headrace.metrics_page`: write the metrics of all processes of PROMETHEUS_MULTIPROC_DIR to stdout.

A program of its own, without Django: adding up 30,000 series takes a second and more of Python, which would take turns
with the event loop of the process that is asked, thread or not.
"""

import os
import sys

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector


def render() -> bytes:
    """The values of all processes, in Prometheus's text format."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)


if __name__ == "__main__":
    os.nice(5)  # streams come first
    sys.stdout.buffer.write(render())
