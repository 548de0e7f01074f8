"""Prices of a document or a list: one that holds already is no change, another supersedes it from now on."""

from decimal import Decimal
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from billing.models import Price
from headrace.apply import export_document
from headrace.apply.tests.documents import EVERYTHING, apply, changes

pytestmark = pytest.mark.django_db
MODEL = "models: {m: {context_window: 5, prices: [%s]}}"


def price(text: str) -> list[str]:
    return changes(MODEL % text)


def test_it_supersedes_and_never_changes() -> None:
    price("{input: 1, output: 2}")
    assert price("{input: 1, output: 2}") == []
    assert price("{input: 1.000, cached_input: 1, output: 2}") == []
    assert price("{input: 1, cached_input: 0.1, output: 2}") != []
    rows = Price.objects.order_by("effective_from").values_list("version", "cached_input")
    assert list(rows) == [("m@1", Decimal(1)), ("m@2", Decimal("0.1"))]


def test_one_to_come_may_be_changed_until_it_comes() -> None:
    price("{input: 1, output: 2}")
    price("{input: 3, output: 2, effective_from: 2199-01-01T00:00:00Z}")
    price("{input: 4, output: 2, effective_from: 2199-01-01T00:00:00Z}")
    assert [row.input for row in Price.objects.order_by("effective_from")] == [Decimal(1), Decimal(4)]


def test_an_export_holds_what_is_in_force_and_to_come() -> None:
    apply(EVERYTHING)
    price("{input: 1, output: 2}")
    price("{input: 2, output: 2}")
    exported = export_document()
    assert exported.count("input: 2\n") == 2  # input and cached_input of the price in force, nothing of the former
    assert "2198-12-31T23:00:00+00:00" in exported
    assert apply(exported).changes == []


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("prices", *arguments, stdout=out)
    return out.getvalue()


def test_a_price_list_is_imported(tmp_path: Path) -> None:
    apply(EVERYTHING)
    file = tmp_path / "prices.csv"
    file.write_text("model,currency,input,output,tenant\ndemo,EUR,0.5,1.75,\norg/other-1.5,EUR,1,2,acme\n")
    assert run("import", str(file), "--dry-run").endswith("dry run: nothing was written\n")
    assert run("import", str(file)).count("\n") == 2
    assert run("import", str(file)) == "no changes\n"
    listed = run()
    assert "demo@4: 0.5 input, 0.5 cached, 1.75 output EUR per million tokens" in listed
    assert "org/other-1.5@1 for acme: 1 input" in listed


@pytest.mark.parametrize("arguments", [["import", "--dry-run", "f.csv"], ["--dry-run", "import", "f.csv"]])
def test_an_option_may_stand_anywhere_and_excel_s_file_is_read(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply(EVERYTHING)
    monkeypatch.chdir(tmp_path)
    rows = "model,currency,input,output\r\ndemo,EUR,0.5,1.75\r\n"
    Path("f.csv").write_bytes(b"\xef\xbb\xbf" + rows.encode())
    assert run(*arguments).endswith("dry run: nothing was written\n")
    european = rows.replace(",", ";").replace(".", ",")  # as Excel saves where the comma is the decimal sign
    Path("f.csv").write_bytes(b"\xef\xbb\xbf" + european.encode())
    run("import", "f.csv")
    assert "demo@4: 0.5 input, 0.5 cached, 1.75 output EUR" in run()
    Path("f.csv").write_bytes(rows.encode("utf-16"))
    with pytest.raises(CommandError, match="not UTF-8"):
        run(*arguments)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("model,input,output\ndmeo,1,2", 'f.csv:2: there is no model "dmeo"; did you mean "demo"?'),
        ("model,inptu\ndemo,1", 'f.csv:1: unknown column "inptu"'),
        ("model,input,output\ndemo,=1+1,2", "f.csv:2: input wants a number"),
        ("model,input,output\ndemo,1,2,3", "f.csv:2: more or fewer cells than columns"),
        ("input,output\n1,2", "f.csv:1: the first line names the columns, of which one is model"),
    ],
)
def test_a_wrong_list_is_refused_with_its_line(
    text: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply(EVERYTHING)
    monkeypatch.chdir(tmp_path)
    Path("f.csv").write_text(text)
    with pytest.raises(CommandError) as refused:
        run("import", "f.csv")
    assert told in str(refused.value)
