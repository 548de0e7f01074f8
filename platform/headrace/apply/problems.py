"""What is wrong with a document, all of it at once, each with its line."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(frozen=True, order=True)
class Problem:
    line: int
    text: str


class ApplyError(Exception):
    """The document cannot be applied and nothing was written. Printed, it is one line `source:line: text` a problem."""

    def __init__(self, source: str, problems: Iterable[Problem]) -> None:
        self.source = source
        self.problems = sorted(set(problems))
        super().__init__("\n".join(f"{source}:{problem.line}: {problem.text}" for problem in self.problems))


class Problems:
    """Collects problems while reading and planning go on."""

    def __init__(self) -> None:
        self.found: list[Problem] = []

    def add(self, line: int, text: str) -> None:
        self.found.append(Problem(line, text))


def near(word: str, known: Iterable[str]) -> str:
    """`; did you mean "x"?` where a known word is near, else `; known: ...` where there are few, else nothing."""
    names = sorted(known)
    if close := get_close_matches(word, names, n=1):
        return f'; did you mean "{close[0]}"?'
    return f"; known: {', '.join(names)}" if 0 < len(names) <= 12 else ""
