"""One subject of the page: a verdict, a figure, what it means, what to do about it, and a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from headrace.quantities import age

GOOD, TIGHT, BAD, QUIET = "good", "tight", "bad", "quiet"
SHOWN = 10  # rows of a table


@dataclass(frozen=True)
class Section:
    """`rows` are cells in the order of `heads`; columns named in `numbers` stand on the right. `todo` "": nothing."""

    title: str
    verdict: str
    figure: str
    detail: str
    todo: str = ""
    link: tuple[str, str] | None = None
    heads: tuple[str, ...] = ()
    numbers: frozenset[str] = frozenset()
    rows: Sequence[tuple[str, ...]] = ()

    @property
    def columns(self) -> list[tuple[str, bool]]:
        """Each head with whether numbers stand below it."""
        return [(head, head in self.numbers) for head in self.heads]

    @property
    def table(self) -> list[list[tuple[str, bool]]]:
        return [[(text, head in self.numbers) for text, head in zip(row, self.heads, strict=True)] for row in self.rows]


def since(moment: datetime, now: datetime) -> str:
    return age((now - moment) / timedelta(milliseconds=1))
