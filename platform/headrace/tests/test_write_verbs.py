"""Rows that have verbs are written by those alone, and the verbs are what callers expect them to be."""

import ast
import inspect
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from django.conf import settings

ROOT: Path = settings.ROOT
FACES = [ROOT / "platform" / "headrace" / name for name in ("portal", "console", "apply", "stack", "management")]
VERBS = {
    "tenants.api_keys": {"issue_key", "change_key", "rotate_key", "revoke_key"},
    "tenants.limits": {"set_limits", "add_model_limits", "remove_model_limits"},
    "tenants.tenants": {"add_tenant", "change_tenant", "suspend_tenant", "resume_tenant"},
    "tenants.projects": {"add_project", "change_project", "remove_project"},
    "tenants.members": {"add_member", "change_member", "remove_member"},
    "tenants.invitations": {"invite", "withdraw_invitation", "accept_invitation"},
    "billing.budgets.terms": {"add_budget", "change_budget", "remove_budget"},
    "billing.budgets.webhooks": {"add_webhook", "change_webhook", "remove_webhook", "send_test"},
}
VERBED = {"Tenant", "ApiKey", "ModelLimits", "Project", "Member", "Invitation", "Budget", "WebhookEndpoint"}
_WRITES = {"create", "bulk_create", "get_or_create", "update_or_create", "update", "delete"}


def sources() -> list[Path]:
    return [path for face in FACES for path in sorted(face.rglob("*.py")) if "tests" not in path.parts]


def rooted_in(node: ast.expr) -> str:
    """The name that a chain of attributes and calls begins with: `ApiKey` of `ApiKey.objects.filter(...).update`."""
    while isinstance(node, ast.Attribute | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def writes_of(path: Path) -> list[str]:
    """Calls that make or change rows of the models that have verbs, as far as the source shows the model."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call) or rooted_in(node.func) not in VERBED:
            continue
        if isinstance(node.func, ast.Name) or (isinstance(node.func, ast.Attribute) and node.func.attr in _WRITES):
            found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    return found


def test_pages_and_commands_write_by_verbs() -> None:
    assert [place for path in sources() for place in writes_of(path)] == []


@pytest.mark.parametrize("name", VERBS)
def test_verbs_take_named_and_typed_arguments(name: str) -> None:
    module: ModuleType = import_module(name)
    for verb in VERBS[name]:
        signature = inspect.signature(getattr(module, verb))
        for parameter in signature.parameters.values():
            assert parameter.kind in {parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD}, (verb, parameter)
            assert parameter.annotation is not parameter.empty, (verb, parameter)
        assert signature.return_annotation is not signature.empty, verb


@pytest.mark.parametrize("name", VERBS)
def test_verbs_know_no_page(name: str) -> None:
    source = inspect.getsource(import_module(name))
    imported = {
        each
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for each in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }
    assert not [each for each in imported if each.startswith(("django.http", "django.forms", "django.contrib.admin"))]
