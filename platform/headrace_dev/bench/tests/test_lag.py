"""The worst bodies are legal, and as bad as the bounds let them be."""

import pytest

from headrace.gateway.dialects.chat_completions.request import parse
from headrace_dev.bench.lag.benchmark import LIMIT_MS, Lag
from headrace_dev.bench.lag.bodies import worst_bodies


def test_the_worst_bodies_are_legal_and_large() -> None:
    bodies = worst_bodies("m", 2**23)
    for name, body in bodies.items():
        assert len(body) <= 2**23, name
        parse(body, [])
    assert sum(len(body) > 0.9 * 2**23 for body in bodies.values()) >= 6


@pytest.mark.bench
def test_it_tells_the_lag_of_each_request_and_of_a_scrape() -> None:
    report = Lag().run({"rounds": 1, "series": 300, "bytes": 2**20, "server": "uvicorn"}, print)
    assert report.rows[-1]["request"] == "/metrics of 300 series"
    assert all(row["worst ms"] >= 0 for row in report.rows)
    assert {target.limit for target in report.targets} == {LIMIT_MS}
    assert all(0 <= row["CPU ms"] <= row["CPU of all ms"] for row in report.rows)
    assert len(report.targets) == len(report.rows) + 1
