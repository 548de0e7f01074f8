"""What a check is."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import redis
from django.db import connection

MOST_SHOWN = 100


@dataclass
class Outcome:
    """What was `compared`, and each difference in a line, of which the first are kept; `total` counts them all."""

    compared: int = 0
    differences: list[str] = field(default_factory=list)
    total: int = 0

    def add(self, difference: str) -> None:
        self.total += 1
        if len(self.differences) < MOST_SHOWN:
            self.differences.append(difference)


class Check(ABC):
    """`name` is what the command calls it, `text` what has to be equal."""

    name: ClassVar[str]
    text: ClassVar[str]

    @abstractmethod
    def run(self, client: "redis.Redis") -> Outcome:
        """Compare. Raises redis.RedisError or django.db.OperationalError where one of them is away."""


def rows(sql: str, arguments: Sequence[Any] | Mapping[str, Any] = ()) -> list[dict[str, Any]]:
    """The rows of a query, by column."""
    with connection.cursor() as cursor:
        cursor.execute(sql, arguments)
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
