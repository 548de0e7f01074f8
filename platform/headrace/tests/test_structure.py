"""The rules of structure: sizes of files and folders, names, `ready()`; that linters keep theirs."""

import ast
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

ROOT: Path = settings.ROOT
APPS = ("platform", "tenants", "billing", "routing", "engines", "templates")
WRITTEN = {".py", ".lua", ".sql", ".html", ".css", ".js", ".md", ".sh", ".yml"}  # by hand: no data, no lock files
NOT_OURS = {"migrations", "node_modules", "axe"}
MOST_LINES = 400
MOST_MODULES = 20
BANNED_NAMES = {"utils", "util", "helpers", "helper", "services", "managers", "misc", "common"}

# Folders that are too flat still, with how many modules they may have at most. A number here may only become smaller.
FLAT_FOLDERS = {
    "billing/models": 21,
    "engines/sizing": 32,
    "platform/headrace/gateway/tests": 94,
    "platform/headrace/portal": 30,
    "platform/headrace/portal/tests": 32,
}
# Breaches of "Faces never import each other". The number may only become smaller.
MOST_BREACHES = 2


@cache
def written_files() -> list[Path]:
    paths = (path for app in APPS for path in sorted((ROOT / app).rglob("*")))
    return [path for path in paths if path.suffix in WRITTEN and not NOT_OURS & {*path.relative_to(ROOT).parts}]


def modules() -> list[Path]:
    return [path for path in written_files() if path.suffix == ".py"]


def pyproject() -> dict[str, Any]:
    tools: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    return tools


def test_no_file_is_longer_than_400_lines() -> None:
    assert len(written_files()) > 1000  # it looks in the right place
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in written_files()}
    assert {path: lines for path, lines in lengths.items() if lines > MOST_LINES} == {}


def test_no_module_or_folder_has_a_name_that_says_nothing() -> None:
    names = {path.relative_to(ROOT): path.relative_to(ROOT).with_suffix("").parts for path in modules()}
    banned = {
        str(path)
        for path, parts in names.items()
        if any(BANNED_NAMES & {*part.split("_")} for part in parts if not part.startswith("test_"))
    }
    assert banned == set()


def test_no_folder_has_more_than_20_flat_modules() -> None:
    counted = Counter(str(path.parent.relative_to(ROOT)) for path in modules() if path.stem != "__init__")
    large = {folder: count for folder, count in counted.items() if count > MOST_MODULES}
    assert {folder: count for folder, count in large.items() if count > FLAT_FOLDERS.get(folder, MOST_MODULES)} == {}
    assert FLAT_FOLDERS.keys() - large.keys() == set(), "it is small enough now: take it off the list"


def test_no_app_does_anything_when_it_is_loaded() -> None:
    """`ready()` of a Django AppConfig runs in every process, in no order that anybody chose."""
    apps = [path for path in modules() if path.stem == "apps"]
    assert len(apps) >= 5
    methods = {
        f"{path.relative_to(ROOT)}:{node.name}"
        for path in apps
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    }
    assert [method for method in methods if method.endswith(":ready")] == []


@pytest.mark.parametrize("rule", ["PLC0415", "TID251", "TRY002", "BLE", "S110", "S112"])
def test_ruff_keeps_the_rules_of_structure(rule: str) -> None:
    """Imports in functions, banned modules, bare exceptions, silent excepts."""
    lint = pyproject()["ruff"]["lint"]
    assert rule in lint["select"]
    assert rule not in lint["ignore"]
    exempt = {files for files, rules in lint["per-file-ignores"].items() if rule in rules}
    assert exempt <= {"manage.py"}


def test_ruff_bans_signals() -> None:
    banned = pyproject()["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]
    assert banned.keys() >= {"django.dispatch", "django.db.models.signals", "django.core.signals", "celery.signals"}


def test_faces_import_each_other_at_the_known_places_alone() -> None:
    [faces] = [contract for contract in pyproject()["importlinter"]["contracts"] if contract["type"] == "independence"]
    assert set(faces["modules"]) == {f"headrace.{face}" for face in ("gateway", "portal", "console", "apply")}
    assert "unmatched_ignore_imports_alerting" not in faces  # a breach that is mended leaves the list
    breaches = [line for line in faces["ignore_imports"] if ".tests." not in line]
    assert len(breaches) <= MOST_BREACHES
