"""`bench ledger` measures on a Headrace of its own, seeded, and checks what it measured."""

import io
import json

import pytest
from django.core.management import call_command

from headrace_dev.bench.benchmark import Target


def report(*options: str) -> dict[str, object]:
    out = io.StringIO()
    call_command("bench", "ledger", "--json", *options, stdout=out)
    found: dict[str, object] = json.loads(out.getvalue())
    return found


@pytest.mark.bench
def test_it_reports_one_object_with_parameters_rows_and_verdict() -> None:
    parts = ("rollups", "closing", "queries", "drain")  # the pages have tests of their own
    found = report("--only", *parts, "--tenants=4", "--keys=20", "--records=4000", "--events=2500", "--rounds=1")
    assert found["benchmark"] == "ledger"
    assert found["parameters"]["records"] == 4000  # type: ignore[index]
    counts = {row["what"]: row["count"] for row in found["rows"]}  # type: ignore[attr-defined]
    assert (counts["seeding records"], counts["seeding keys"], counts["drain"]) == (4000, 20, 2500)
    assert counts["closing"] >= 4
    assert {"cost by day", "usage by key, 30 days", "usage command"} <= counts.keys()
    targets = {target["text"]: target for target in found["verdict"]["targets"]}  # type: ignore[index]
    assert targets["seconds, 4 tenants closed"]["limit"] == 30
    assert targets["p95 ms, usage, 30 days"]["limit"] == 100
    assert targets["records a second, drained"]["is_floor"] is True


@pytest.mark.bench
def test_a_nights_check_is_measured_as_months_are_added() -> None:
    out = io.StringIO()
    call_command("bench", "ledger-check", "--json", "--tenants=4", "--keys=8", "--records=500", stdout=out)
    found = json.loads(out.getvalue())
    counts = {row["what"]: row["count"] for row in found["rows"]}
    assert counts["a night's check, 1 months"] < counts["a night's check, 6 months"]
    assert counts["a night's check, 6 months"] < counts["ledger check --all, 13 months"]
    assert len(found["verdict"]["targets"]) == 2


@pytest.mark.bench
def test_it_drains_without_a_seeded_ledger() -> None:
    found = report("--only", "drain", "--tenants=3", "--events=2500", "--rounds=1")
    assert [(row["what"], row["count"]) for row in found["rows"]] == [("drain", 2500)]  # type: ignore[attr-defined]


def test_a_rate_has_to_reach_its_target() -> None:
    assert Target("a rate", 5000, 5000, is_floor=True).met is True
    assert Target("a rate", 4999, 5000, is_floor=True).met is False
    assert "at least 5,000" in str(Target("a rate", 4999, 5000, is_floor=True))
