"""The documents of README and docs do what they say they do: each is taken as it stands, after those before it. Their
commands, files, variables and codes are those that there are."""

import re
import shlex
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.core.management import get_commands, load_command_class

from billing.invoicing.tests.making import close, make_customer, make_price, make_seller, use, utc
from headrace.apply.document import apply_document
from headrace.gateway import errors

DOCS = settings.ROOT / "platform" / "docs"
ORDER = [
    "configuration",
    "money",
    "routing",
    "portal",
    "api",
    "architecture",
    "metrics",
    "operate",
    "settings",
    "benchmarks",
]
PAGES = [settings.ROOT / "README.md", *(DOCS / f"{name}.md" for name in ORDER)]
TEXT = "\n".join(page.read_text() for page in PAGES)
DOCUMENTS = re.findall(r"^```yaml\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
COMMANDS = re.findall(r"^\.venv/bin/python manage\.py (.+)$", TEXT, re.MULTILINE)
SOURCE = settings.ROOT / "platform" / "headrace"
CORE = settings.ROOT / "platform" / "headrace_core"
READERS = [
    SOURCE / "settings.py",
    CORE / "env.py",
    CORE / "secret_key.py",
    SOURCE / "server/__main__.py",
    SOURCE / "management/commands/migrate.py",
]


@pytest.mark.django_db
def test_it_applies_them_one_after_the_other() -> None:
    assert len(DOCUMENTS) >= 4
    for document in DOCUMENTS:
        assert apply_document(document, source="README.md", actor="test").changes
        assert apply_document(document, source="README.md", actor="test").changes == []


@pytest.mark.django_db
@pytest.mark.parametrize("line", COMMANDS)
def test_its_commands_take_what_they_are_given(line: str) -> None:
    if "NORTH-" in line:
        make_seller()
        make_customer()
        use("2026-03-05 12:00", make_price())
        (invoice,) = close(utc("2026-04-02"))
        line = re.sub(r"NORTH-\d+", str(invoice.pk), line)
    name, *arguments = shlex.split(line, comments=True)
    load_command_class(get_commands()[name], name).create_parser("manage.py", name).parse_args(arguments)


def test_its_files_exist() -> None:
    named = set(re.findall(r"`([\w/]+\.(?:py|lua|yml))`|\]\(([\w/.]+)\)", TEXT))
    folders = [settings.ROOT, DOCS]
    assert len(named) > 20
    for path in (code or link for code, link in named):
        assert any((folder / path).is_file() for folder in folders) or any(SOURCE.parent.rglob(path)), path


def test_it_lists_the_variables_that_are_read() -> None:
    read = {
        name
        for file in READERS
        for name in re.findall(r'"((?:HEADRACE|DATABASE|REDIS|PROMETHEUS)_[A-Z_]+)"', file.read_text())
    }
    assert {name for name, _ in variables()} == read


def test_it_tells_their_defaults() -> None:
    told = dict(variables())
    source = (SOURCE / "settings.py").read_text()
    found = re.findall(r'env\.(?:number|integer|port)\("(\w+)", ([\d_.]+)[,)]', source)
    assert len(found) > 10
    for name, default in found:
        shown = re.escape(default if "." in default or name.endswith("_PORT") else f"{int(default):,}")
        assert re.search(rf"\([^)]*(?<![\d,.]){shown}(?![\d.]|,\d)[^)]*\)", told[name]), (name, default)


def test_its_error_codes_have_their_status() -> None:
    named = re.findall(r"\b([45]\d\d) `([a-z_]+)`", TEXT)
    assert len(named) >= 5
    assert [(int(status), code) for status, code in named if errors.TABLE[code][0] != int(status)] == []


def variables() -> Iterator[tuple[str, str]]:
    """Each variable of the table with what its row says; `_PORT` stands for HEADRACE_EMAIL_PORT after its like."""
    for cell, text in re.findall(r"^\| (`[A-Z].*?) \| (.*) \|$", TEXT, re.MULTILINE):
        names = re.findall(r"`([A-Z_]+)`", cell)
        stem = names[0].rpartition("_")[0]
        yield from ((stem + name if name.startswith("_") else name, text) for name in names)


def test_the_readme_fits_one_sitting_and_names_every_page() -> None:
    readme = PAGES[0].read_text()
    assert len(readme.splitlines()) <= 150
    assert set(DOCS.glob("*.md")) == set(PAGES[1:])
    assert all(f"(platform/docs/{page.name})" in readme for page in PAGES[1:])
