"""`manage.py usage` shows what the ledger holds, in three forms."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from billing import pricing
from billing.drain import drain_all
from billing.tests.stream import append, connect, usage_event
from tenants.models import Tenant

pytestmark = pytest.mark.django_db

# As the design fixes them for the command, the API and the log line alike.
FIELDS = [
    "request_id",
    "tenant",
    "project",
    "key",
    "model",
    "target",
    "replica",
    "kind",
    "status",
    "finish_reason",
    "input_tokens",
    "cached_input_tokens",
    "output_tokens",
    "reasoning_tokens",
    "usage_source",
    "cost",
    "currency",
    "price",
    "admitted_at",
    "finished_at",
    "queue_ms",
    "ttft_ms",
    "tpot_ms",
    "fallback",
    "cache",
    "labels",
]
COLUMNS = [*FIELDS, "uncached_input_tokens", "upstream_id", "corrections"]


@pytest.fixture(autouse=True)
def tenants() -> None:
    Tenant.objects.create(slug="acme", name="Acme", time_zone="Asia/Kolkata")
    Tenant.objects.create(slug="globex", name="Globex")


def ledger(*events: dict[str, Any]) -> None:
    with connect() as client:
        append(client, *events)
        drain_all(client)


def usage(*arguments: str, form: str = "json") -> Any:
    out = io.StringIO()
    call_command("usage", "--tenant=acme", f"--format={form}", *arguments, stdout=out)
    return json.loads(out.getvalue()) if form == "json" else out.getvalue()


def test_it_prints_one_array_with_the_agreed_fields() -> None:
    event = usage_event()
    ledger(event, usage_event(tenant="globex"))
    (row,) = usage()
    assert list(row) == COLUMNS
    assert {name: row[name] for name in FIELDS} == {name: event[name] for name in FIELDS}
    assert (row["uncached_input_tokens"], row["upstream_id"]) == (60, "a" * 32)
    assert row["corrections"] == []


def test_it_prints_an_empty_array_where_there_is_nothing() -> None:
    assert usage() == []


def test_it_shows_unpriced_as_none_and_never_as_zero() -> None:
    ledger(usage_event(cost=None, cost_nano=None))
    assert usage()[0]["cost"] is None
    assert "unpriced" in usage(form="table")


def test_it_puts_corrections_with_their_record() -> None:
    event = usage_event()
    late = {"part": 1, "input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 4, "reasoning_tokens": 0}
    ledger(event, event | late | {"cost": None, "cost_nano": None}, usage_event())
    rows = {row["request_id"]: row for row in usage()}
    (correction,) = rows.pop(event["request_id"])["corrections"]
    assert (correction["part"], correction["output_tokens"], correction["cost"]) == (1, 4, None)
    assert [row["corrections"] for row in rows.values()] == [[]]


def test_it_shows_the_newest_first_up_to_a_limit() -> None:
    now = timezone.now()
    ledger(*(usage_event(now - timedelta(minutes=minute)) for minute in (2, 0, 1)))
    times = [row["admitted_at"] for row in usage()]
    assert times == sorted(times, reverse=True)
    assert [row["admitted_at"] for row in usage("--limit=2")] == times[:2]


def test_it_takes_dates_in_the_tenants_zone_and_times_with_their_own() -> None:
    today = timezone.now().date()
    midnight = datetime(today.year, today.month, today.day, tzinfo=UTC) - timedelta(hours=5, minutes=30)
    ledger(usage_event(midnight), usage_event(midnight - timedelta(milliseconds=1)))
    assert len(usage(f"--from={today}")) == 1
    assert len(usage(f"--to={today}")) == 1
    assert len(usage(f"--from={midnight.isoformat()}", f"--to={(midnight + timedelta(seconds=1)).isoformat()}")) == 1
    assert len(usage()) == 2


def test_it_writes_csv_that_reads_back() -> None:
    event = usage_event(labels={"user": 'a "quoted", label'})
    ledger(event)
    (row,) = csv.DictReader(io.StringIO(usage(form="csv")))
    assert list(row) == COLUMNS
    assert json.loads(row["labels"]) == event["labels"]
    assert (row["cost"], row["input_tokens"]) == ("0.000123456789", "100")


def test_it_reads_many_records_in_chunks() -> None:
    ledger(*(usage_event() for _ in range(2100)))
    assert usage("--limit=2050", form="csv").count("\n") == 2051


def test_it_aligns_a_table() -> None:
    ledger(usage_event(), usage_event(model="a-longer-name", input_tokens=123456))
    heading, *lines = usage(form="table").splitlines()
    assert heading.split()[:3] == ["admitted_at", "request_id", "project"]
    assert len({line.index(" local ") for line in lines}) == 1
    assert all(line.endswith("0.000123456789 EUR") for line in lines)


@pytest.mark.parametrize(
    "arguments", [["--tenant=nobody"], ["--limit=0"], ["--limit=-1"], ["--limit=x"], ["--from=soon"], ["--format=xml"]]
)
def test_it_refuses_what_it_does_not_understand(arguments: list[str]) -> None:
    with pytest.raises(CommandError):
        usage(*arguments)


@pytest.mark.parametrize("cost", ["0.000000000000", "0.000000000198", "1234567.000000000001"])
def test_a_cost_is_plain_digits_in_every_form(cost: str) -> None:
    ledger(usage_event(cost=cost, cost_nano=pricing.nano(Decimal(cost))))
    (record,) = usage()
    (row,) = csv.DictReader(io.StringIO(usage(form="csv")))
    assert (record["cost"], row["cost"]) == (cost, cost)
