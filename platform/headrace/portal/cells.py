"""Figures by time and by groups at once: read in one pass, and added up by either as often as a page likes."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connections
from django.db.models import F, QuerySet
from django.db.models.functions import TruncDay
from django.utils import timezone

from billing.models import UsageHour
from headrace.portal.figures import SUMS, Figures, added, dearest_first


@dataclass(frozen=True, slots=True)
class Cells:
    """One of `cells` a step (an hour or a day of the current time zone) and group. Figures' names are tuples: the group
    by each of what was asked for.
    """

    cells: list[tuple[datetime, Figures]]

    def grouped(self, place: int = 0) -> list[Figures]:
        """One line a group by the `place`-th of what was asked for, the dearest first, then the most used."""
        return dearest_first(_sums((figures.name[place], figures) for _, figures in self.cells))

    def course(self, *, by_hour: bool) -> list[Figures]:
        """One line a step in which something was used, oldest first: the steps read, or the days that hours make up."""
        steps = ((step if by_hour else _midnight(step), figures) for step, figures in self.cells)
        return sorted(_sums(steps), key=lambda line: line.name)

    def tokens(self) -> list[tuple[datetime, Any, int]]:
        """Tokens by step and first group."""
        return [(step, figures.name[0], figures.tokens) for step, figures in self.cells]


def read(rows: QuerySet[UsageHour], *names: str, by_hour: bool) -> Cells:
    """Of the rollups `rows`, by the dimensions `names`. Steps are hours or days. Within a transaction."""
    step = F("hour") if by_hour else TruncDay("hour")  # hours are the local ones already
    sums = {f"n_{name}": UsageHour.total(name) for name in SUMS}
    found = rows.annotate(step=step).values_list("step", *names).annotate(**sums)
    after = 1 + len(names)
    with connections[rows.db].cursor() as cursor:
        # It takes a day and a model for independent, expects ten times the groups there are, and would sort all rows.
        cursor.execute("SET LOCAL enable_sort = off")
        lines = list(found)
        cursor.execute("SET LOCAL enable_sort = on")
    return Cells([(line[0], Figures(line[1:after], *line[after:])) for line in lines])


def _midnight(step: datetime) -> datetime:
    return timezone.localtime(step).replace(hour=0, fold=0)


def _sums(cells: Iterable[tuple[Any, Figures]]) -> list[Figures]:
    parts: dict[Any, list[Figures]] = defaultdict(list)
    for name, figures in cells:
        parts[name].append(figures)
    return [added(name, each) for name, each in parts.items()]
