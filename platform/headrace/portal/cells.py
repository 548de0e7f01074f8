"""What a report of usage is made of: lines by group or by time, and tokens by both, to draw."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from billing.periods import Calendar
from headrace.portal import figures
from headrace.portal.figures import Figures, added, dearest_first
from headrace.portal.rollups import TOKENS, Rollups

Drawn = list[tuple[datetime, Any, int]]


class Source(Protocol):
    def grouped(self) -> list[Figures]:
        """One line a group, the dearest first, then the most used."""

    def course(self, *, by_hour: bool) -> list[Figures]:
        """One line a step in which something was used, oldest first: the steps there are, or the days they make up."""

    def tokens(self, drawn: Sequence[Any]) -> Drawn:
        """Tokens by step and group; the group is None for all that are not `drawn`."""


@dataclass(frozen=True, slots=True)
class Cells:
    """One of `cells` a step (an hour or a day of the tenant's calendar) and group, which is its figures' name."""

    cells: list[tuple[datetime, Figures]]
    calendar: Calendar

    def grouped(self) -> list[Figures]:
        return dearest_first(_sums((each.name, each) for _, each in self.cells))

    def course(self, *, by_hour: bool) -> list[Figures]:
        steps = ((step if by_hour else self._day(step), each) for step, each in self.cells)
        return sorted(_sums(steps), key=lambda line: line.name)

    def _day(self, step: datetime) -> datetime:
        return self.calendar.day_start(self.calendar.date_at(step))

    def tokens(self, drawn: Sequence[Any]) -> Drawn:
        return [(step, each.name if each.name in drawn else None, each.tokens) for step, each in self.cells]


@dataclass(frozen=True, slots=True)
class Rolled:
    """The rollups `rows` by a dimension."""

    rows: Rollups
    by: str

    def grouped(self) -> list[Figures]:
        return figures.grouped(self.rows, self.by)

    def course(self, *, by_hour: bool) -> list[Figures]:
        return over_time(self.rows).course(by_hour=by_hour)

    def tokens(self, drawn: Sequence[Any]) -> Drawn:
        columns = f"step, CASE WHEN {self.by} = ANY(%s) THEN {self.by} END, {TOKENS}"
        found = self.rows.select(columns, list(drawn), group="1, 2")
        return [(self.rows.moment(step), name, count) for step, name, count in found]


def over_time(rows: Rollups) -> Cells:
    """By time alone."""
    return Cells([(line.name, line) for line in figures.course(rows)], rows.calendar)


def _sums(cells: Iterable[tuple[Any, Figures]]) -> list[Figures]:
    parts: dict[Any, list[Figures]] = defaultdict(list)
    for name, each in cells:
        parts[name].append(each)
    return [added(name, each) for name, each in parts.items()]
