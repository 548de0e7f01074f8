"""What a check is."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, ClassVar

import redis
from django.db import connection

from billing import partitions
from billing.ledger_check.months import all_months

MOST_SHOWN = 100


@dataclass
class Outcome:
    """How much was `compared`, and each difference in a line: the first MOST_SHOWN of `total`.

    `months`: in which of them there is a difference, as far as the check reads by the month.
    """

    compared: int = 0
    differences: list[str] = field(default_factory=list)
    total: int = 0
    months: set[date] = field(default_factory=set)

    def add(self, difference: str, count: int = 1) -> None:
        """Add one line, which tells of `count` differences."""
        self.total += count
        if len(self.differences) < MOST_SHOWN:
            self.differences.append(difference)

    def merge(self, other: "Outcome") -> None:
        self.compared += other.compared
        self.total += other.total
        self.differences += other.differences[: MOST_SHOWN - len(self.differences)]
        self.months |= other.months


class Check(ABC):
    """`name` is what the command calls it, `text` what has to be equal."""

    name: ClassVar[str]
    text: ClassVar[str]

    @abstractmethod
    def run(self, client: "redis.Redis", months: Sequence[date] | None = None) -> Outcome:
        """Compare what is of these months (UTC, by their first days; None: all there are); a check that reads no month
        by itself compares the same whichever are named.

        Raises redis.RedisError or django.db.OperationalError where one of them is away.
        """


class MonthlyCheck(Check):
    """A check that reads one month at a time. `needs_records`: months whose records retention dropped are left out."""

    needs_records: ClassVar[bool] = True

    def run(self, client: "redis.Redis", months: Sequence[date] | None = None) -> Outcome:
        outcome = Outcome()
        dropped = partitions.dropped_months() if self.needs_records else set()
        for month in all_months() if months is None else months:
            if month not in dropped:
                start, end = partitions.month_span(month)
                found = self.of_month({"month": month, "start": start, "end": end})
                found.months |= {month} if found.total else set()
                outcome.merge(found)
        return outcome

    @abstractmethod
    def of_month(self, span: Mapping[str, Any]) -> Outcome:
        """Compare `month`, which is [start, end): the named arguments of its queries."""


def first_of(different: str, order: str, *, compared: str, given: str = "") -> str:
    """The query of the first rows of `different`, a query, in this order: beside each, how many there are in `total`,
    and what the query `compared` counts. One row of nothing else where there are none. Both may read from `given`, the
    common table expressions before them."""
    return f"""
WITH {given}{", " if given else ""}different AS MATERIALIZED ({different})
SELECT ({compared}) AS compared, (SELECT count(*) FROM different) AS total, d.*
FROM (SELECT 1) AS one
LEFT JOIN (SELECT * FROM different ORDER BY {order} LIMIT {MOST_SHOWN}) AS d ON true
"""


def outcome_of(found: Sequence[Mapping[str, Any]], lines: Iterable[str]) -> Outcome:
    """The outcome of a `first_of` query; `lines` tell of its rows."""
    total = found[0]["total"]
    return Outcome(found[0]["compared"], list(lines) if total else [], total)


def rows(sql: str, arguments: Sequence[Any] | Mapping[str, Any] = ()) -> list[dict[str, Any]]:
    """The rows of a query, by column."""
    with connection.cursor() as cursor:
        cursor.execute(sql, arguments)
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
