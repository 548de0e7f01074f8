"""Bounds on input. A value outside them is refused by name rather than turned into a large answer."""

import difflib
import math
from collections.abc import Iterable

from engines.sizing.errors import BadValue, UnknownName


def within(field: str, value: float, low: float, high: float, *, unit: str = "") -> float:
    """`value` if low <= value <= high; otherwise BadValue. NaN and infinities are refused."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise BadValue(field, value, "must be a finite number")
    if value < low or value > high:
        raise BadValue(field, value, f"must be between {low:g} and {high:g} {unit}".rstrip())
    return value


def known(kind: str, name: str, names: Iterable[str]) -> str:
    """The name as the table spells it (case, spaces and underscores are forgiven), or UnknownName with near ones."""
    table = sorted(names)
    folded = {_fold(each): each for each in table}
    if (found := folded.get(_fold(name))) is not None:
        return found
    near = difflib.get_close_matches(_fold(name), list(folded), n=5, cutoff=0.5)
    inside = [each for each in folded if len(_fold(name)) > 2 and (_fold(name) in each or each in _fold(name))]
    ordered = dict.fromkeys([*near, *inside])
    raise UnknownName(kind, name, tuple(folded[each] for each in ordered)[:6], tuple(table))


def _fold(name: str) -> str:
    return name.strip().lower().replace("_", "-").replace(" ", "-").rsplit("/", 1)[-1]
