"""Writing a batch of rows of which some may be bad: these are found by halving, and stop none of the others."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from django.db import DataError, IntegrityError

T = TypeVar("T")


def write_good(rows: Sequence[T], write: Callable[[Sequence[T]], int]) -> tuple[int, list[tuple[T, str]]]:
    """`write` all `rows` but those that the database refuses; the sum of its answers, and those with the reason.

    `write` writes all it is given in one transaction, or nothing. Failures that are not the rows' fault (no connection,
    a lock not had in time) are raised: nothing more is written.
    """
    if not rows:
        return 0, []
    try:
        return write(rows), []
    except (DataError, IntegrityError) as error:
        if len(rows) == 1:
            return 0, [(rows[0], f"the database refuses it: {str(error).splitlines()[0]}")]
    middle = len(rows) // 2
    first, second = write_good(rows[:middle], write), write_good(rows[middle:], write)
    return first[0] + second[0], first[1] + second[1]
