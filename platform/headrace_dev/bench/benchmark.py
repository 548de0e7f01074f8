"""What a benchmark is: arguments, a run, a report with its parameters and a verdict."""

import json
import os
import platform
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from django.core.management.base import CommandParser

Say = Callable[[str], None]


@dataclass(frozen=True)
class Target:
    """One line of the verdict: `value` is to be at most `limit` (at least, if `is_floor`); None: not measured."""

    text: str
    value: float | None
    limit: float
    is_floor: bool = False

    @property
    def met(self) -> bool | None:
        if self.value is None:
            return None
        return self.value >= self.limit if self.is_floor else self.value <= self.limit

    def __str__(self) -> str:
        if self.value is None:
            return f"  ?  {self.text}: not measured (make bench-peers)"
        bound = "at least" if self.is_floor else "at most"
        return f"{' met' if self.met else 'MISS'} {self.text}: {_round(self.value)} ({bound} {_round(self.limit)})"


@dataclass
class Report:
    """`rows` are plain objects, one a line of the table; `notes` what a reader must know to trust them."""

    benchmark: str
    parameters: dict[str, Any]
    rows: list[dict[str, Any]]
    targets: list[Target]
    notes: list[str] = field(default_factory=list)

    @property
    def met(self) -> bool | None:
        """False when a target is missed, None when none is missed but some could not be judged."""
        outcomes = [target.met for target in self.targets]
        return False if False in outcomes else None if None in outcomes else True

    def as_json(self) -> str:
        return json.dumps(
            {
                "benchmark": self.benchmark,
                "parameters": self.parameters,
                "machine": machine(),
                "rows": self.rows,
                "notes": self.notes,
                "verdict": {
                    "met": self.met,
                    "targets": [asdict(target) | {"met": target.met} for target in self.targets],
                },
            }
        )

    def as_text(self) -> str:
        """A table of the rows, whose keys are the columns, then notes and verdict."""
        columns = list(self.rows[0]) if self.rows else []
        table = [columns, *([shown(row[column]) for column in columns] for row in self.rows)]
        widths = [max(len(line[i]) for line in table) for i in range(len(columns))]
        lines = [
            "  ".join(cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(pairs))
            for pairs in (list(zip(line, widths, strict=True)) for line in table)
        ]
        return "\n".join([*lines, "", *self.notes, "", *map(str, self.targets)])


def _round(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def shown(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def machine() -> dict[str, Any]:
    return {"cores": os.cpu_count(), "system": platform.system(), "python": platform.python_version()}


class Benchmark(ABC):
    """One file, one class, one entry in registry.BENCHMARKS."""

    name: ClassVar[str]
    help: ClassVar[str]

    @abstractmethod
    def add_arguments(self, parser: CommandParser) -> None:
        """Its own options; `--json` is everybody's."""

    @abstractmethod
    def run(self, options: dict[str, Any], say: Say) -> Report:
        """Measure, telling progress through `say`. Starts and ends its own processes. Raises BenchmarkFailed."""


class BenchmarkFailed(Exception):
    """It could not be measured, or what was measured is not to be trusted; the message says why."""
