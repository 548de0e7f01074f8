"""`export` writes what `apply` takes: applied back it changes nothing."""

import io
import sys
from pathlib import Path

import pytest
import yaml
from django.core.management import CommandError, call_command

from billing.models import Budget
from headrace.apply import apply_document, export_document
from headrace.apply.tests.documents import EVERYTHING, apply
from routing.models import Model
from tenants.models import ApiKey, Project, Tenant

pytestmark = pytest.mark.django_db


def test_it_changes_nothing_when_applied_back() -> None:
    apply(EVERYTHING)
    apply("tenants: {acme: {suspended: true}, globex: {keys: {app: {revoked: true}}}}")
    Tenant.objects.filter(slug="acme").update(name=' a "quoted"\u00a0name: #1 ')
    assert apply(export_document()).changes == []


@pytest.mark.parametrize("word", ["no", "0x10", "010", "1.5", "null", "2027-01-31", "1e5", "1_000", "-", "on", "60:00"])
def test_it_quotes_names_that_yaml_would_take_for_something_else(word: str) -> None:
    tenant = Tenant.objects.create(slug="acme", name=word)
    Project.objects.create(tenant=tenant, slug="web", name=word)
    assert apply(export_document()).changes == []


def test_it_can_be_applied_after_a_model_that_a_key_names_was_deleted() -> None:
    apply(EVERYTHING)
    Model.objects.filter(name="org/other-1.5").delete()
    assert apply(export_document()).changes == []


def test_it_holds_no_secret() -> None:
    result = apply(EVERYTHING)
    text = export_document()
    for secret in ["secret", result.minted[0].text[-20:], "digest", ApiKey.objects.all()[0].public_id]:
        assert secret not in text


def test_it_makes_the_same_installation_elsewhere() -> None:
    apply(EVERYTHING)
    text = export_document()
    Budget.objects.all().delete()
    ApiKey.objects.all().delete()
    Project.objects.all().delete()
    result = apply_document(text, source="-", actor="alice")
    assert {minted.label for minted in result.minted} == {
        "key acme/web/key-1",
        "key acme/batch/nightly",
        "key globex/main/app",
    }
    assert export_document() == text


def test_it_exports_one_tenant_alone() -> None:
    apply(EVERYTHING)
    document = yaml.safe_load(export_document(tenant="globex"))
    assert list(document) == ["tenants"]
    assert [tenant["slug"] for tenant in document["tenants"]] == ["globex"]


def test_it_runs_as_commands_joined_by_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    apply(EVERYTHING)
    exported, said = io.StringIO(), io.StringIO()
    call_command("export", stdout=exported)
    pipe = io.TextIOWrapper(io.BytesIO(exported.getvalue().encode()))
    monkeypatch.setattr(sys, "stdin", pipe)
    call_command("apply", stdout=said)
    assert said.getvalue() == "no changes\n"


def test_it_prints_a_minted_key_once(tmp_path: Path) -> None:
    path = f"{tmp_path}/demo.yaml"
    with open(path, "w") as file:
        file.write("tenants: {acme: {projects: [web], keys: [{}]}}")
    dry, first, second = io.StringIO(), io.StringIO(), io.StringIO()
    call_command("apply", path, dry_run=True, stdout=dry)
    call_command("apply", path, stdout=first)
    call_command("apply", path, stdout=second)
    assert "sk-hr-" not in dry.getvalue()
    assert first.getvalue().count("sk-hr-") == 1
    assert "key acme/web/key-1, shown this once: sk-hr-" in first.getvalue()
    assert second.getvalue() == "no changes\n"


def test_it_names_the_file_and_the_line_on_the_command_line(tmp_path: Path) -> None:
    path = f"{tmp_path}/bad.yaml"
    with open(path, "wb") as file:
        file.write(b"tenants:\n  acme: {x: 1}\n")
    with pytest.raises(CommandError, match=f"{path}:2: tenant acme: unknown field"):
        call_command("apply", path)
    with open(path, "wb") as file:
        file.write(b"tenants:\n  \xff: {}\n")
    with pytest.raises(CommandError, match=f"{path}:2: not UTF-8"):
        call_command("apply", path)
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("apply", f"{tmp_path}/none.yaml")
    with pytest.raises(CommandError, match="there is no tenant x"):
        call_command("export", tenant="x")
