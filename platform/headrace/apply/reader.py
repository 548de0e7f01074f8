"""Typed values out of YAML nodes. A value of another type is a problem with its line, never a guess.

Values are taken from the text as written, by our rules and not YAML 1.1's: there 010 is 8, 1:30 is 90 and `no` is false
where a name was meant.
"""

import os
import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from unicodedata import category

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from headrace.apply.problems import Problems

_TAG = "tag:yaml.org,2002:"
_KINDS = {"str": "text", "int": "a number", "float": "a number", "bool": "yes or no", "null": "nothing"}
_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9_]{0,29})")
_NUMBER = re.compile(r"[+-]?(0|[1-9][0-9_]{0,29})(\.[0-9]{1,30})?")
_ENVIRONMENT = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Invalid(Exception):
    """A node holds something else than it should; the text says what."""


def parse(text: str, problems: Problems) -> MappingNode | None:
    """The document's mapping; None if it is empty or cannot be read."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problems.add(mark.line + 1 if mark else 1, f"not YAML: {error.problem or error.context}")
    except yaml.reader.ReaderError as error:
        problems.add(text.count("\n", 0, error.position) + 1, f"not YAML: {error.reason}")
    except RecursionError:
        problems.add(1, "not YAML we read: nested too deeply")
    else:
        if node is None or isinstance(node, MappingNode):
            return node
        problems.add(line_of(node), f"wants a mapping of sections, found {describe(node)}")
    return None


def line_of(node: Node) -> int:
    return int(node.start_mark.line) + 1


def describe(node: Node) -> str:
    if not node.tag.startswith(_TAG) or "/" in _type(node):
        return f"the tag {node.tag}"
    if isinstance(node, SequenceNode):
        return "a list"
    if isinstance(node, MappingNode):
        return "a mapping"
    kind = _KINDS.get(_type(node), "something else")
    shown = str(node.value)[:40]
    return kind if kind == "nothing" or not shown.isprintable() else f"{kind}: {shown}"


def is_empty(node: Node) -> bool:
    return _type(node) == "null" or (isinstance(node, SequenceNode | MappingNode) and not node.value)


def is_text(node: Node) -> bool:
    return _type(node) == "str"


def mapping(node: Node, problems: Problems) -> dict[str, tuple[int, Node]]:
    """Line and value by key. Nothing at all is an empty mapping; a repeated key is a problem."""
    if _type(node) == "null":
        return {}
    if not isinstance(node, MappingNode) or _type(node) != "map":
        raise Invalid(f"wants a mapping, found {describe(node)}")
    pairs: dict[str, tuple[int, Node]] = {}
    for key, value in node.value:
        try:
            name = text(key)
        except Invalid as error:
            problems.add(line_of(key), f"a name {error}")
            continue
        if name in pairs:
            problems.add(line_of(key), f'"{name}" stands here twice (first in line {pairs[name][0]})')
            continue
        pairs[name] = (line_of(key), value)
    return pairs


def items(node: Node) -> list[Node]:
    if _type(node) == "null":
        return []
    if not isinstance(node, SequenceNode) or _type(node) != "seq":
        raise Invalid(f"wants a list, found {describe(node)}")
    return list(node.value)


def text(node: Node) -> str:
    if isinstance(node, ScalarNode) and _type(node) in {"int", "float", "bool", "timestamp"}:
        raise Invalid(f'wants text, found {describe(node)}; put it in quotes: "{node.value}"')
    if _type(node) != "str":
        raise Invalid(f"wants text, found {describe(node)}")
    value = str(node.value)
    if not value.strip() or any(category(character) == "Cc" for character in value):
        raise Invalid("wants text in one line, without control characters")
    return value


def lines(node: Node) -> str:
    """Lines of text: a list of them, or one."""
    return "\n".join(text(item) for item in items(node)) if isinstance(node, SequenceNode) else text(node)


def address(node: Node) -> str:
    return text(node).rstrip("/")


def whole(node: Node) -> int:
    return int(_plain(node, _WHOLE, "a whole number"))


def amount(node: Node) -> Decimal:
    return Decimal(_plain(node, _NUMBER, "a number"))


def seconds(node: Node) -> float:
    return float(_plain(node, _NUMBER, "a number of seconds"))


def weight(node: Node) -> float:
    return float(_plain(node, _NUMBER, "a number from 0 to 1"))


def percent(node: Node) -> float:
    return float(_plain(node, _NUMBER, "a number of percent"))


def truth(node: Node) -> bool:
    if _type(node) != "bool":
        raise Invalid(f"wants true or false, found {describe(node)}")
    return str(node.value).lower() in {"true", "yes", "on"}


def moment(node: Node) -> datetime:
    example = "as in 2027-01-31T00:00:00Z"
    if _type(node) not in {"str", "timestamp"}:
        raise Invalid(f"wants a time, {example}, found {describe(node)}")
    try:
        value = datetime.fromisoformat(str(node.value))
    except ValueError:
        raise Invalid(f"wants a time, {example}, found {describe(node)}") from None
    if value.tzinfo is None:
        raise Invalid(f"wants a time with its zone, {example}, found {node.value}")
    return value


def day(node: Node) -> date:
    example = "as in 2027-01-31"
    if _type(node) not in {"str", "timestamp"}:
        raise Invalid(f"wants a day, {example}, found {describe(node)}")
    try:
        return date.fromisoformat(str(node.value))
    except ValueError:
        raise Invalid(f"wants a day, {example}, found {describe(node)}") from None


def secret(node: Node) -> str:
    """Literal text, or the environment variable named by `${NAME}`. No message shows the value."""
    if _type(node) != "str" or not node.value:
        raise Invalid("wants text in quotes, or ${NAME} for a variable of the environment")
    if not (named := _ENVIRONMENT.fullmatch(node.value)):
        return str(node.value)
    if not (value := os.environ.get(named[1])):
        raise Invalid(f"names the environment variable {named[1]}, which is not set")
    return value


def texts(node: Node) -> list[str]:
    return list(dict.fromkeys(text(item) for item in items(node)))


def wholes(node: Node) -> list[int]:
    return [whole(item) for item in items(node)]


def optional(read: Any) -> Any:
    """A reader for which nothing (`null`, `~`) means: none."""
    return lambda node: None if _type(node) == "null" else read(node)


def _plain(node: Node, pattern: re.Pattern[str], wanted: str) -> str:
    """The digits of an unquoted number. Booleans, quoted numbers, .nan and .inf are none."""
    if not isinstance(node, ScalarNode) or node.style or not pattern.fullmatch(node.value):
        raise Invalid(f"wants {wanted}, found {describe(node)}")
    return str(node.value).replace("_", "")


def _type(node: Node) -> str:
    return str(node.tag).removeprefix(_TAG)
