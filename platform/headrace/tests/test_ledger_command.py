"""`manage.py ledger check`: in words, as one object, and by its exit status."""

import io
import json
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command

from billing.ledger_check.tests.books import damage, make_cast, priced_event, set_price, settle
from billing.tests.stream import append, connect, usage_event

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def cast() -> None:
    make_cast()


def check(*arguments: str) -> tuple[str, int]:
    out = io.StringIO()
    try:
        call_command("ledger", "check", *arguments, stdout=out)
    except SystemExit as end:
        return out.getvalue(), int(str(end.code))
    return out.getvalue(), 0


def as_json(*arguments: str) -> tuple[dict[str, Any], int]:
    text, status = check("--json", *arguments)
    return json.loads(text), status


def test_it_says_that_the_books_agree() -> None:
    settle(priced_event(set_price()))
    text, status = check()
    assert status == 0
    assert text.splitlines()[-1] == "clean"
    report, status = as_json()
    assert status == 0
    assert report["verdict"] == {"clean": True, "differences": 0}
    assert report["parameters"]["checks"] == [one["name"] for one in report["checks"]]
    assert report["checks"][0]["compared"] == 1


def test_it_prints_each_difference_and_exits_with_1() -> None:
    settle(priced_event(set_price()))
    damage("UPDATE billing_usagehour SET output_tokens = output_tokens + 1")
    text, status = check()
    assert status == 1
    assert "output_tokens: records 7, hour 8" in text
    assert text.splitlines()[-1] == "4 differences"
    report, status = as_json()
    assert (status, report["verdict"]) == (1, {"clean": False, "differences": 4})
    assert [one["total"] for one in report["checks"] if one["name"] in {"hours", "days", "hour_costs"}] == [1, 1, 1]
    assert as_json("--only=costs")[1] == 0


def test_it_counts_what_waits_without_calling_it_a_difference(settings: LazySettings, tmp_path: Any) -> None:
    settings.HOME = tmp_path
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / "1-x.jsonl").write_text("{}\n{}\n")
    settle(b"bad", priced_event(set_price()))  # type: ignore[arg-type]
    with connect() as client:
        append(client, usage_event(), usage_event())
        client.xreadgroup("ledger", "drain", {"hr:usage": ">"}, count=1)
    report, status = as_json()
    assert status == 0
    assert report["waiting"] == {"holds": 0, "stream": 2, "unacknowledged": 1, "spooled": 2, "dead_letters": 1}


def test_it_says_that_it_could_not_compare(settings: LazySettings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    with pytest.raises(CommandError, match="could not be compared") as error:
        check()
    assert error.value.returncode == 2
