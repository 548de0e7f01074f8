"""`manage.py invoices`: the life of an invoice from the command line."""

import csv
import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from billing.invoicing.tests.making import event_of, make_customer, make_price, make_seller, use, utc, write
from billing.models import DroppedMonth, Invoice
from billing.tasks import make_invoices
from tenants.models import AuditEntry
from tenants.tests.cast import sql

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def usage() -> None:
    make_seller()
    make_customer()
    use("2026-03-05 12:00", make_price(), tokens=(1_000_000, 400_000, 50_000))


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("invoices", *arguments, stdout=out)
    return out.getvalue()


def test_it_closes_finalises_credits_and_voids(tmp_path: Path) -> None:
    assert "2026-03" in run("close")
    (draft,) = json.loads(run("list", "--json"))
    assert (draft["status"], draft["total"], draft["number"]) == ("draft", "0.44", None)
    assert "NORTH-000001" in run("finalise")
    assert "NORTH-000002" in run("credit", "NORTH-000001", "--reason", "outage", "--net", "0.04")
    with pytest.raises(CommandError, match="credit note NORTH-000002 stands on NORTH-000001"):
        run("void", "NORTH-000001", "--reason", "wrong")
    run("void", "NORTH-000002", "--reason", "wrong")
    run("void", draft["id"][:13], "--reason", "wrong")
    assert [(row["number"], row["status"]) for row in json.loads(run("list", "--tenant", "acme", "--json"))] == [
        ("NORTH-000002", "voided"),
        ("NORTH-000001", "voided"),
    ]
    assert json.loads(run("list", "--status", "draft", "--json")) == []
    assert "2026-03" in run("close", "--tenant", "acme")
    (who, origin) = AuditEntry.objects.filter(subject__startswith="billing_invoice ").values_list("who", "origin")[0]
    assert (who != "postgres", origin) == (True, "manage.py invoices")
    assert sql("SELECT current_setting('headrace.actor')") == [("",)]


@pytest.mark.parametrize(
    ("form", "begins"),
    [("pdf", b"%PDF"), ("csv", b"invoice_number,"), ("xlsx", b"PK"), ("json", b"{"), ("focus", b"BilledCost,")],
)
def test_it_exports_every_form(tmp_path: Path, form: str, begins: bytes) -> None:
    run("close")
    run("finalise")
    run("export", "NORTH-000001", "--format", form, "--output", str(tmp_path / "invoice"))
    assert (tmp_path / "invoice").read_bytes().startswith(begins)
    with pytest.raises(CommandError, match="cannot be written: No such file"):
        run("export", "NORTH-000001", "--output", str(tmp_path / "nowhere" / "invoice"))


def test_it_opens_the_records_behind_a_line_and_says_when_they_were_dropped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("close")
    run("finalise")
    out = tmp_path / "records.csv"
    run("records", "NORTH-000001", "2", "--output", str(out))
    (record,) = csv.DictReader(io.StringIO(out.read_text()))
    assert (record["line"], record["cached_input_tokens"], record["cost"]) == ("2", "400000", "0.440000000000")
    run("records", "NORTH-000001", "--output", str(out))
    assert len(list(csv.DictReader(io.StringIO(out.read_text())))) == 3
    with pytest.raises(CommandError, match="NORTH-000001 has no line 9"):
        run("records", "NORTH-000001", "9")
    DroppedMonth.objects.create(month="2026-03-01", dropped_at=utc("2027-04-01"), records=1)
    capsys.readouterr()
    run("records", "NORTH-000001", "1", "--output", str(out))
    assert "Retention has dropped the records of 2026-03 on 2027-04-01" in capsys.readouterr().err


def test_it_says_what_an_invoice_waits_for_and_ends_with_one(capsys: pytest.CaptureFixture[str]) -> None:
    write(event_of(utc("2026-03-05 12:00")))
    run("close")
    with pytest.raises(SystemExit, match="1"):
        run("finalise")
    assert "1,050 tokens of 2026-03 have no price: set one, then `ledger price-unpriced`" in capsys.readouterr().err
    with pytest.raises(CommandError, match="have no price"):
        run("finalise", str(Invoice.objects.get().pk))


@pytest.mark.parametrize(
    "arguments",
    [
        ("void", "NORTH-000009", "--reason", "x"),
        ("export", "zzzz"),
        ("close", "--tenant", "nobody"),
        ("finalise", "00"),
    ],
    ids=" ".join,
)
def test_it_names_what_is_not_there(arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match="there is no"):
        run(*arguments)


@pytest.mark.parametrize("asked", [(), ("opal", "198.51.100.7")], ids=["by itself", "asked by an operator"])
def test_it_is_done_by_the_worker_too(asked: tuple[str, ...]) -> None:
    make_invoices(*asked)
    assert Invoice.objects.get().number == "NORTH-000001"
    made = AuditEntry.objects.filter(subject__startswith="billing_invoice ").values_list("who", "origin")
    assert {named == asked for named in made} == {bool(asked)}
    assert sql("SELECT current_setting('headrace.actor')") == [("",)]
