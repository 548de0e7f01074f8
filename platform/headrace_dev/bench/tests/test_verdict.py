"""Targets are judged on the right rows, and none is called met that was not measured."""

import json
from dataclasses import replace

from headrace_dev.bench.benchmark import Report, Target
from headrace_dev.bench.figures import Figures
from headrace_dev.bench.verdict import DAPHNE, LITELLM, ROUTER, UVICORN, Measured, rows, targets


def row(
    label: str, rate: float, cpu: float, *, tenants: int | None = None, ttft: float = 1, delay: float = 2
) -> Measured:
    blank = Figures(*[0.0] * 8)
    run = replace(blank, cpu_ms=cpu, added_ttft_p99_ms=ttft, delay_p99_ms=delay)
    return Measured(label, tenants, rate, run)


ALL = [
    row("direct", 5, 0),
    row("direct", 40, 0),
    row(UVICORN, 5, 4, tenants=1),
    row(UVICORN, 40, 3, tenants=1),
    row(DAPHNE, 40, 6, tenants=1),
    row(UVICORN, 5, 5, tenants=500),
    row(UVICORN, 40, 3.6, tenants=500),
    row(DAPHNE, 5, 9, tenants=500, delay=11),
    row(DAPHNE, 40, 7, tenants=500),
    row(ROUTER, 5, 3, ttft=0.5),
    row(ROUTER, 40, 1.5, ttft=40),
    row(LITELLM, 5, 100),
    row(LITELLM, 40, 90),
]


def judged(measured: list[Measured]) -> dict[str, Target]:
    return {target.text: target for target in targets(measured)}


def test_it_compares_with_the_most_tenants_at_the_highest_rate() -> None:
    found = judged(ALL)
    assert found["CPU, times sglang-router's, 40/s"] == Target("CPU, times sglang-router's, 40/s", 3.6 / 1.5, 3)
    assert found["CPU, as a part of LiteLLM's, 40/s"].value == 3.6 / 90
    assert found["CPU under Daphne, as a part of LiteLLM's, 40/s"].value == 7 / 90
    assert found["added TTFT p99 beyond sglang-router's, ms, 5/s"].met is False
    assert found["added TTFT p99 beyond sglang-router's, ms, 40/s"].met is True
    assert found["event delay p99, ms, headrace-daphne, 5/s"].met is False
    assert found["Headrace's streams that did not come whole"].met is True
    assert found["CPU, 500 tenants to 1, headrace-uvicorn, 40/s"].value == 3.6 / 3


def test_it_leaves_open_what_was_not_measured() -> None:
    found = judged([one for one in ALL if one.label not in {ROUTER, LITELLM}])
    assert found["CPU, times sglang-router's, 40/s"].met is None
    assert "make bench-peers" in str(found["CPU, times sglang-router's, 40/s"])


def test_a_report_is_one_object_with_parameters_and_verdict() -> None:
    report = Report("overhead", {"repeat": 5}, rows(ALL), targets(ALL), ["a note"])
    said = json.loads(report.as_json())
    assert said["parameters"] == {"repeat": 5}
    assert said["verdict"]["met"] is False
    assert said["rows"][0]["server"] == "direct"
    assert Report("x", {}, [], [Target("a", 1, 2)]).met is True
    assert Report("x", {}, [], [Target("a", 1, 2), Target("b", None, 2)]).met is None
    text = report.as_text().splitlines()
    assert text[0].split()[:3] == ["server", "tenants", "rate"]
    assert any(line.startswith("MISS") for line in text)
    assert any(line.startswith(" met") for line in text)
