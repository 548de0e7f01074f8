"""`bench ledger` measures on a Headrace of its own, and counts what it measured."""

import io
import json

import pytest
from django.core.management import call_command

from headrace.bench.benchmark import Target

pytestmark = pytest.mark.alone


def test_it_reports_one_object_with_parameters_rows_and_verdict() -> None:
    out = io.StringIO()
    call_command("bench", "ledger", "--json", "--tenants=3", "--events=2500", "--rounds=1", stdout=out)
    report = json.loads(out.getvalue())
    assert report["benchmark"] == "ledger"
    assert report["parameters"]["events"] == 2500
    assert [(row["what"], row["records"]) for row in report["rows"]] == [("drain", 2500)]
    (target,) = report["verdict"]["targets"]
    assert (target["limit"], target["is_floor"]) == (5000, True)
    assert target["met"] == (target["value"] >= 5000)


def test_a_rate_has_to_reach_its_target() -> None:
    assert Target("a rate", 5000, 5000, is_floor=True).met is True
    assert Target("a rate", 4999, 5000, is_floor=True).met is False
    assert "at least 5,000" in str(Target("a rate", 4999, 5000, is_floor=True))
