"""Entries: the named objects of a document, read by a declared kind."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from yaml.nodes import MappingNode, Node, SequenceNode

from headrace.apply import reader
from headrace.apply.problems import Problems, near

Read = Callable[[Node], Any]


@dataclass(frozen=True)
class Kind:
    """What an entry may say.

    key: the field that names it. A collection is a list of entries, or a mapping from the key to the rest of each.
    groups: fields written inside a mapping of their own: {group: {field: (attribute, reader)}}.
    short: the field that an entry written as plain text stands for. nameless: the key may be left out. ordered: a list
    only, whose order counts.
    later: parts the design names that are not built; refused unless empty.
    """

    noun: str
    key: str
    fields: Mapping[str, Read]
    groups: Mapping[str, Mapping[str, tuple[str, Read]]] = field(default_factory=dict)
    children: Mapping[str, "Kind"] = field(default_factory=dict)
    only: Mapping[str, "Kind"] = field(default_factory=dict)
    later: tuple[str, ...] = ()
    short: str = ""
    nameless: bool = False
    ordered: bool = False

    @property
    def known(self) -> set[str]:
        return {self.key, *self.fields, *self.groups, *self.children, *self.only} - {""}


@dataclass(frozen=True)
class Given:
    value: Any
    line: int


@dataclass
class Entry:
    """One object of the document: only what it says, with lines. `name` is empty for a nameless one."""

    kind: Kind
    name: str
    line: int
    position: int
    given: dict[str, Given] = field(default_factory=dict)
    children: dict[str, list["Entry"]] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """How a message names it: `tenant acme`; a nameless one by its kind."""
        return f"{self.kind.noun} {self.name or self.get(self.kind.key, '')}".strip()

    def get(self, attribute: str, default: Any = None) -> Any:
        return self.given[attribute].value if attribute in self.given else default

    def line_of(self, attribute: str) -> int:
        return self.given[attribute].line if attribute in self.given else self.line


def read_collection(kind: Kind, node: Node, problems: Problems) -> list[Entry]:
    """The entries of a collection, those that can be read; two of one name are a problem."""
    entries: list[Entry] = []
    if isinstance(node, SequenceNode):
        for position, item in enumerate(node.value):
            entries += _one(kind, item, "", reader.line_of(item), position, problems)
    else:
        try:
            pairs = {} if kind.ordered and reader.items(node) else reader.mapping(node, problems)
        except reader.Invalid:
            wanted = "a list" if kind.ordered else "a list or a mapping"
            problems.add(reader.line_of(node), f"{kind.noun}s: wants {wanted}, found {reader.describe(node)}")
            return []
        for position, (name, (line, item)) in enumerate(pairs.items()):
            entries += _one(kind, item, name, line, position, problems)
    seen: dict[str, int] = {}
    for entry in entries:
        if entry.name and entry.name in seen and not kind.nameless:
            problems.add(entry.line, f"{kind.noun} {entry.name} stands here twice (first in line {seen[entry.name]})")
        seen.setdefault(entry.name, entry.line)
    return entries


def _one(kind: Kind, node: Node, name: str, line: int, position: int, problems: Problems) -> list[Entry]:
    entry = Entry(kind, name, line, position)
    short = kind.short if name or kind.nameless else kind.key
    if not isinstance(node, MappingNode) and short and not reader.is_empty(node):
        _value(entry, short, short, kind.fields.get(short, reader.text), line, node, problems)
    else:
        read_fields(entry, node, problems)
    if named := entry.given.pop(kind.key, None):
        if name and named.value != name:
            problems.add(named.line, f'{kind.noun} {name}: its {kind.key} says "{named.value}"')
        entry.name = named.value
    if not entry.name and not kind.nameless:
        if not any(problem.line == line for problem in problems.found):
            problems.add(line, f"a {kind.noun} wants a {kind.key}")
        return []
    return [entry]


def read_fields(entry: Entry, node: Node, problems: Problems) -> None:
    kind = entry.kind
    try:
        pairs = reader.mapping(node, problems)
    except reader.Invalid as error:
        problems.add(reader.line_of(node), f"{entry.label}: {error}")
        return
    for name, (line, value) in sorted(pairs.items(), key=lambda pair: pair[0] != kind.key):
        if name in kind.later:
            if not reader.is_empty(value):
                problems.add(line, f"{entry.label}: {name} is not built yet")
        elif name in kind.children:
            entry.children[name] = read_collection(kind.children[name], value, problems)
        elif name in kind.only:
            child = Entry(kind.only[name], entry.name, line, 0)
            read_fields(child, value, problems)
            entry.children[name] = [child]
        elif name in kind.groups:
            _group(entry, name, line, value, problems)
        elif name in kind.fields or name == kind.key:
            _value(entry, name, name, kind.fields.get(name, reader.text), line, value, problems)
        else:
            problems.add(line, f'{entry.label}: unknown field "{name}"{near(name, kind.known)}')


def _group(entry: Entry, group: str, line: int, node: Node, problems: Problems) -> None:
    fields, what = entry.kind.groups[group], entry.label
    try:
        pairs = reader.mapping(node, problems)
    except reader.Invalid as error:
        problems.add(line, f"{what}: {group} {error}")
        return
    for name, (at, value) in pairs.items():
        if name not in fields:
            problems.add(at, f'{what}: {group} knows no "{name}"{near(name, fields)}')
            continue
        attribute, read = fields[name]
        _value(entry, attribute, name, read, at, value, problems)


def _value(entry: Entry, attribute: str, name: str, read: Read, line: int, node: Node, problems: Problems) -> None:
    try:
        entry.given[attribute] = Given(read(node), line)
    except reader.Invalid as error:
        problems.add(line, f"{entry.label}: {name} {error}")
