"""Every name in Redis is made in headrace_core/store_keys.py; Lua spells those names, and no others."""

import ast
import re
from pathlib import Path

from django.conf import settings

from headrace_core import store_keys
from tenants.meters.meter import MOST_NANO

ROOT: Path = settings.ROOT
NAMES = {name: value for name, value in vars(store_keys).items() if name.isupper()}
LUA = sorted((ROOT / "tenants" / "meters" / "lua").glob("*.lua"))
SPELT = re.compile(r"'\^?(hr:[^'\[(]*)")


def literals(path: Path) -> list[str]:
    """The texts that begin with `hr:`, those within f-strings too; personalisations of hashes (bytes) are none."""
    found = (node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant))
    return [value for value in found if isinstance(value, str) and value.startswith("hr:")]


def test_no_two_names_are_the_same() -> None:
    assert len(set(NAMES.values())) == len(NAMES)
    assert all(value.startswith("hr:") for value in NAMES.values())


def test_no_other_module_spells_a_name() -> None:
    paths = [
        path for app in ("platform", "tenants", "billing", "routing", "engines") for path in (ROOT / app).rglob("*.py")
    ]
    own = [
        path
        for path in paths
        if "tests" not in path.parts and path.name != "store_keys.py" and "hr:" in path.read_text()
    ]
    assert {str(path.relative_to(ROOT)): found for path in own if (found := literals(path))} == {}


def test_lua_spells_the_names() -> None:
    spelt = {name for path in LUA for name in SPELT.findall(re.sub(r"--.*", "", path.read_text()))}
    assert spelt >= {store_keys.HOLD, store_keys.DONE, store_keys.QUEUE, store_keys.ROOM, store_keys.EPOCH}
    assert spelt - set(NAMES.values()) == set()


def test_lua_counts_to_the_same_most() -> None:
    text = (ROOT / "tenants" / "meters" / "lua" / "budgets.lua").read_text()
    assert re.findall(r"^local MOST = '(\d+)'$", text, re.MULTILINE) == [str(MOST_NANO)]
