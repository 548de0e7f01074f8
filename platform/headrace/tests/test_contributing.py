"""CONTRIBUTING.md and the decisions name files, names and targets that exist; the registries agree with each other."""

import ast
import re
from pathlib import Path

import pytest
from django.conf import settings

from billing.exports.formats import FORMATS
from engines.models import Engine
from engines.protocols import PROTOCOLS
from headrace.apply.sections import CONDITIONS
from headrace.gateway import errors
from headrace.portal import rejections
from headrace.portal.views.invoices import TITLES
from headrace_dev.bench.registry import BENCHMARKS
from routing.conditions import Conditions

ROOT: Path = settings.ROOT
DOCS = ROOT / "platform" / "docs"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
DECISIONS = sorted((DOCS / "decisions").glob("*.md"))
PAGES = [CONTRIBUTING, *DECISIONS]
CHECKLISTS = re.split(r"^### ", CONTRIBUTING.read_text(), flags=re.MULTILINE)[1:]

FILE = re.compile(r"`([\w.-]+(?:/[\w.-]+)+/?|[\w-]+\.(?:md|toml|lock|yml))`|`(\.[\w.-]+(?:/[\w.-]+)*)`")
LINK = re.compile(r"\]\((?!https?:)([^)#]+)\)")
DEFINED = re.compile(r"`(\w+)` in `([\w./-]+\.py)`")


def text_of(page: Path) -> str:
    """The page's text on one line, since a sentence may break anywhere."""
    return " ".join(page.read_text().split())


def files_named(text: str) -> set[str]:
    """Paths in backticks, from the root; what is to be added (NAME) counts as its folder."""
    paths = {one or other for one, other in FILE.findall(text)}
    return {path.rpartition("/")[0] if "NAME" in path else path for path in paths}


def names_in(path: Path) -> set[str]:
    """What a module defines at its top: classes, functions, and names that are set."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.Assign(targets=targets):
                found |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_files_and_links_exist(page: Path) -> None:
    text = text_of(page)
    assert [path for path in sorted(files_named(text)) if not (ROOT / path).exists()] == []
    assert [link for link in LINK.findall(text) if not (page.parent / link).exists()] == []


def test_named_registries_are_defined_where_the_page_says() -> None:
    named = DEFINED.findall(text_of(CONTRIBUTING))
    assert len(named) >= 25
    assert [(name, path) for name, path in named if name not in names_in(ROOT / path)] == []


def test_each_checklist_names_a_file_to_add_or_change_and_its_page() -> None:
    assert len(CHECKLISTS) == 9
    for checklist in CHECKLISTS:
        title, text = checklist.partition("\n")[0], " ".join(checklist.split())
        assert DEFINED.search(text), title
        assert re.search(r"`platform/docs/\w+\.md`", text), title
        assert re.search(r"`[\w./]*test\w*(?:\.py|/)`", text), title


def test_named_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    command = re.compile(r"`make ([a-z-]+)|^make ([a-z-]+) +(?:#|ARGS)", re.MULTILINE)
    named = {one or other for page in PAGES for one, other in command.findall(page.read_text())}
    assert {"install", "test", "test-bench"} <= named <= targets


def test_the_list_of_decisions_names_each_with_its_title() -> None:
    records = [page for page in DECISIONS if page.name != "README.md"]
    rows = re.findall(
        r"^\| \[(\d+)\]\(([\w.-]+)\) \| (.+) \|$", (DOCS / "decisions" / "README.md").read_text(), re.MULTILINE
    )
    assert [name for _, name, _ in rows] == [page.name for page in records]
    for number, name, title in rows:
        assert (DOCS / "decisions" / name).read_text().startswith(f"# {number}. {title}\n"), name
        assert int(name[:4]) == int(number)


def test_each_decision_says_what_it_costs_and_where_it_is() -> None:
    for page in DECISIONS:
        if page.name != "README.md":
            heads = re.findall(r"^\*\*(Context|Decision|What it costs|Where)\.\*\*", page.read_text(), re.MULTILINE)
            assert heads == ["Context", "Decision", "What it costs", "Where"], page.name
            assert files_named(text_of(page)), page.name


# --- what the checklists say a test demands ---------------------------------------------------------------------------
def test_every_protocol_can_be_chosen_and_is_documented() -> None:
    assert set(PROTOCOLS) == set(Engine.values)
    text = (DOCS / "configuration.md").read_text()
    assert [name for name in PROTOCOLS if not re.search(rf"\b{name}\b", text)] == []


def test_every_condition_can_be_written_in_yaml() -> None:
    assert set(CONDITIONS) == set(Conditions.__struct_fields__)


def test_every_export_form_has_a_button_and_is_documented() -> None:
    assert set(TITLES) == set(FORMATS)
    text = (DOCS / "money.md").read_text()
    assert [form for form in FORMATS if not re.search(rf"\b{form}\b", text)] == []


def test_every_error_code_is_in_the_docstring() -> None:
    said = set(re.findall(r"\w+", errors.__doc__ or ""))
    assert set(errors.TABLE) - said == set()
    assert set(rejections._MEANINGS) <= set(errors.TABLE)


def test_every_benchmark_is_documented() -> None:
    text = text_of(DOCS / "benchmarks.md")
    assert [name for name in BENCHMARKS if not re.search(rf"bench {name}(?![\w-])", text)] == []
