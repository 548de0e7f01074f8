"""The difference between a document and the database: what would be written, and how to say it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from django.db import models

from headrace.apply.entries import Entry
from headrace.apply.problems import Problems
from headrace_core.writes import NON_FIELD_ERRORS, InvalidWrite, check_row

SECRET = "(secret)"


@dataclass(frozen=True)
class Difference:
    field: str
    before: str
    after: str


@dataclass
class Change:
    """One object made or changed: the verbs to call, or rows to save (with the columns to write, None: a new row) and
    rows to delete."""

    is_new: bool
    label: str
    differences: list[Difference]
    saves: list[tuple[models.Model, list[str] | None]] = field(default_factory=list)
    deletes: list[models.Model] = field(default_factory=list)
    verbs: list[Callable[[], object]] = field(default_factory=list)
    outcome: str = ""  # what is known of it only when it is written
    line: int = 1  # where the document says so

    @property
    def fields(self) -> set[str]:
        """The names of what differs."""
        return {difference.field for difference in self.differences}

    @property
    def told(self) -> str:
        return f"{self}; {self.outcome}" if self.outcome else str(self)

    def __str__(self) -> str:
        if self.is_new:
            shown = [f"{d.field}={d.after}" for d in self.differences]
            return " ".join(["+", self.label, *shown])
        return f"~ {self.label}: " + ", ".join(f"{d.field} {d.before} -> {d.after}" for d in self.differences)

    def call(self, verb: Callable[..., object], **arguments: Any) -> None:
        """Write it by the domain's verb, when it is written, instead of saving the planned row."""
        self.saves = []
        self.verbs.append(partial(verb, **arguments))

    def add(self, planned: models.Model, verb: Callable[..., models.Model], **arguments: Any) -> None:
        """As `call`; what refers to the planned row refers from then on to the row that the verb added."""

        def write() -> None:
            added = verb(**arguments)
            planned.pk, planned._state = added.pk, added._state

        self.saves = []
        self.verbs.append(write)

    def write(self) -> None:
        for row in self.deletes:
            row.delete()
        for row, columns in self.saves:
            row.save(force_insert=columns is None, update_fields=columns)
        for verb in self.verbs:
            verb()


@dataclass(frozen=True, repr=False)
class Minted:
    """A key made without a secret of the operator's: `text` is shown once."""

    label: str
    text: str


@dataclass
class Plan:
    problems: Problems = field(default_factory=Problems)
    changes: list[Change] = field(default_factory=list)
    minted: list[Minted] = field(default_factory=list)
    tenants: set[str] = field(default_factory=set)  # those the document names

    def put(self, row: models.Model, entry: Entry, label: str, wanted: Mapping[str, Any]) -> Change | None:
        """Bring `row` (unsaved: to be made) to the `wanted` values, validated; the change, None if there is none.

        Values that the row has already are no difference. What `wanted` leaves out stays as it is.
        """
        is_new = row._state.adding
        differences = []
        for name, value in wanted.items():
            before = getattr(row, name)
            if not _same(before, value):
                differences.append(Difference(name, show(before), show(value)))
                setattr(row, name, value)
        columns = [difference.field for difference in differences]
        if not is_new and not columns:
            return None
        self._validate(row, entry, label, None if is_new else columns)
        change = Change(is_new, label, differences, [(row, None if is_new else columns)], line=entry.line)
        self.changes.append(change)
        return change

    def _validate(self, row: models.Model, entry: Entry, label: str, columns: list[str] | None) -> None:
        """Check the written `columns` (None: all) by the model's own rules; relations are checked where planned."""
        try:
            check_row(row, columns)
        except InvalidWrite as invalid:
            for name, texts in invalid.errors.items():
                what = label if name == NON_FIELD_ERRORS else f"{label}: {name}"
                self.problems.add(entry.line_of(name), f"{what}: {texts[0]}")  # the rest follow from the first


def show(value: Any) -> str:
    if value is None or value == []:
        return "none"
    if isinstance(value, bytes | memoryview):
        return SECRET
    if isinstance(value, list):
        return ",".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value).replace("\n", ", ")  # lines of an address: a change is one line


def _same(before: Any, after: Any) -> bool:
    if isinstance(before, list) and isinstance(after, list):
        return set(before) == set(after)
    return bool(before == after)
